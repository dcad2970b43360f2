// SPDX-License-Identifier: GPL-3.0-or-later
//
// What all charts share: making them, theme, size, axes.

const charts = new Map();
const hasCharts = typeof window.echarts !== 'undefined';

/* A chart in `node` drawn by option(); drawn again when the theme or the width changes. */
function plot(name, node, option, started) {
    if (!hasCharts) return null;
    const old = charts.get(name);
    if (old) old.chart.dispose();
    const chart = window.echarts.init(node, null, { renderer: 'canvas' });
    const entry = { chart, node, option };
    charts.set(name, entry);
    chart.setOption(option());
    if (started) started(chart);
    return entry;
}

function redraw(name) {
    const entry = charts.get(name);
    if (entry) entry.chart.setOption(entry.option(), { notMerge: true });
}

function redrawAll() {
    for (const [name, entry] of charts) {
        if (!entry.node.isConnected) {
            entry.chart.dispose();
            charts.delete(name);
        } else {
            entry.chart.resize();
            entry.chart.setOption(entry.option(), { notMerge: true });
        }
    }
}

/* The place of a chart with its description for those who do not see it. */
function chartBox(label, height) {
    return el('div', { class: 'chart', role: 'img', 'aria-label': label,
        style: { height: `${height}px` } });
}

function narrow() {
    return window.innerWidth < 700;
}

/* What every option begins with. */
function baseOption() {
    const t = theme();
    return {
        animation: false,
        color: t.series,
        textStyle: { color: t.ink, fontFamily: 'inherit' },
        aria: { enabled: true, decal: { show: false } },
        tooltip: {
            trigger: 'item', confine: true, backgroundColor: t.paper, borderColor: t.line,
            textStyle: { color: t.ink, fontSize: 12 }, extraCssText: 'box-shadow: 0 4px 18px #0003;',
        },
    };
}

/* The least and greatest of positive values, or null. */
function span(values) {
    let least = Infinity;
    let most = -Infinity;
    for (const value of values) {
        if (!Number.isFinite(value)) continue;
        if (value < least) least = value;
        if (value > most) most = value;
    }
    return least <= most ? [least, most] : null;
}

/* Round values between two positive ones: 1, 2 and 5 times powers of ten, or more where they are
   few. */
function roundValues(least, most) {
    const wanted = most / least > 2000 ? [1] : most / least > 60 ? [1, 3] : most / least > 8 ? [1, 2, 5]
        : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    const values = [];
    for (let e = Math.floor(Math.log10(least)); e <= Math.log10(most); e++) {
        for (const m of wanted) {
            const value = m * 10 ** e;
            if (value >= least * 0.999 && value <= most * 1.001) values.push(value);
        }
    }
    return values;
}

/* A value axis; logarithmic where that is wanted and possible. */
function valueAxis(title, unit, range, logarithmic) {
    const t = theme();
    const show = (v) => (unit === '%' ? percent(v) : quantity(v, unit, 3));
    const axis = {
        type: 'value', name: title, nameLocation: 'middle',
        nameTextStyle: { color: t.dim, fontSize: 12 }, scale: true,
        axisLabel: { color: t.dim, hideOverlap: true, formatter: show },
        axisLine: { show: true, lineStyle: { color: t.line } },
        axisTick: { lineStyle: { color: t.line } },
        splitLine: { lineStyle: { color: t.line, type: [2, 4] } },
    };
    if (!range) return axis;
    const [least, most] = range;
    if (least === most) {
        const room = Math.abs(least) * 0.1 || 1;
        return { ...axis, min: least - room, max: most + room };
    }
    if (!logarithmic || least <= 0 || most / least < 1.5) return axis;
    const room = Math.max((most / least) ** 0.05, 1.03);
    const values = roundValues(least / room, most * room);
    return {
        ...axis, type: 'log', logBase: 10, min: least / room, max: most * room,
        axisTick: { ...axis.axisTick, customValues: values },
        axisLabel: { ...axis.axisLabel, customValues: values },
    };
}

/* The tooltip and the click of a design: what it is. */
function designTip(s, row) {
    const line = (title, text) => el('div', { class: 'tipline' }, el('span', {}, title),
        el('b', {}, text));
    const groups = [...knobGroups(s)].map(([stem, knobs]) =>
        line(shortKnob(stem), knobs.map((k) => s.knobText(row, k)).join(', ')));
    return el('div', { class: 'tip' },
        el('div', { class: 'tiphead' }, el('b', {}, `Trial ${s.trial[row]}`),
            el('span', {}, s.statusText(row)), data.all.length > 1 && el('span', {}, s.name)),
        s.about.objectives.filter((o) => !o.is)
            .map((o) => line(o.name, plain(s.objectives[s.about.objectives.indexOf(o)][row], 5))),
        data.metrics.filter((key) => Number.isFinite(s.results[key][row])).map((key) =>
            line(data.results[key].title, quantity(s.results[key][row], data.results[key].unit))),
        el('hr'), groups);
}

function checkbox(label, checked, onchange) {
    return el('label', { class: 'check' },
        el('input', { type: 'checkbox', checked, onchange: (e) => onchange(e.target.checked) }),
        label);
}

function select(label, options, value, onchange) {
    return el('label', { class: 'pick' }, label,
        el('select', { onchange: (e) => onchange(e.target.value) }, options.map(([key, title]) =>
            el('option', { value: key, selected: key === value }, title))));
}
