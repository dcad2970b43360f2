// SPDX-License-Identifier: GPL-3.0-or-later
//
// The data of the page: columns of trials and what is known about each study.

function decode(column, n) {
    if ('all' in column) return new Float64Array(n).fill(column.all === null ? NaN : column.all);
    const [kind, text] = Object.entries(column)[0];
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    const view = { f64: Float64Array, u8: Uint8Array, u16: Uint16Array }[kind];
    return new view(bytes.buffer);
}

const FEASIBLE = 0;
const INFEASIBLE = 1;

/* One study: `about` as written, columns decoded. */
class Study {
    constructor({ about, rows }, index) {
        this.index = index;
        this.about = about;
        this.n = rows.n;
        this.trial = decode(rows.trial, rows.n);
        this.status = decode(rows.status, rows.n);
        this.reason = decode(rows.reason, rows.n);
        this.objectives = rows.objectives.map((column) => decode(column, rows.n));
        this.results = Object.fromEntries(
            Object.entries(rows.results).map(([key, column]) => [key, decode(column, rows.n)]));
        this.knobs = rows.knobs.map((column) => decode(column, rows.n));
        this.maximize = about.objectives[0].maximize;
        this.best = about.top.length > 0 ? about.top[0] : -1;
        this.designs = new Map(about.designs.map((design) => [design.row, design]));
        this.front = new Set(about.front.rows);
    }

    get name() {
        return data.studies.length > 1 ? shortPath(this.about.file) : this.about.name;
    }

    /* Before the name of a series, where there are several studies. */
    get prefix() {
        return data.studies.length > 1 ? `${this.name}: ` : '';
    }

    /* Text of a knob's value in a row; an inactive knob has none. */
    knobText(row, knob) {
        return this.about.knobs[knob].values[this.knobs[knob][row]] ?? '–';
    }

    feasible(row) {
        return this.status[row] === FEASIBLE;
    }

    statusText(row) {
        return data.head.statuses[this.status[row]];
    }

    /* Whether any feasible row has this result. */
    has(key) {
        return this.results[key].some((value, row) => this.status[row] <= INFEASIBLE
            && Number.isFinite(value));
    }

    /* How many times better than the baseline the first objective is; NaN when that is unknown. */
    gain(row) {
        const base = baselineObjective(this);
        const value = this.objectives[0][row];
        return this.maximize ? value / base : base / value;
    }
}

/* An objective's value in its unit, where it has one. */
function objectiveText(objective, value, digits) {
    return objective.unit ? quantity(value, objective.unit, digits) : plain(value, digits);
}

function baselineObjective(study) {
    const { baseline } = study.about;
    const value = baseline.objectives[study.about.objectives[0].name];
    return typeof value === 'number' ? value : NaN;
}

/* The last folder and name of a path. */
function shortPath(path) {
    return String(path).split('/').slice(-2).join('/');
}

/* Knobs under one name: elements of a per-dimension knob together. */
function knobGroups(study) {
    const groups = new Map();
    study.about.knobs.forEach((knob, index) => {
        const stem = knob.name.replace(/\[\d+\]$/, '');
        if (!groups.has(stem)) groups.set(stem, []);
        groups.get(stem).push(index);
    });
    return groups;
}

/* "network.npus[2]" as "npus[2]". */
function shortKnob(name) {
    const dot = name.indexOf('.');
    return dot < 0 ? name : name.slice(dot + 1);
}

const data = JSON.parse(document.getElementById('data').textContent);
data.results = Object.fromEntries(data.head.results.map((result) => [result.key, result]));
data.metrics = data.head.results.slice(0, data.head.metrics).map((result) => result.key);
data.all = [];

/* What the reader chose; charts and tables follow it. */
const state = { study: 0, selected: null, filter: null };
const followers = [];

/* Calls `fn` whenever the reader chooses something. */
function follow(fn) {
    followers.push(fn);
}

function choose(change) {
    Object.assign(state, change);
    followers.forEach((fn) => fn(change));
}

function study() {
    return data.all[state.study];
}
