// SPDX-License-Identifier: GPL-3.0-or-later
//
// The table of trials: sorted, filtered by marks, words and status, and saved as CSV or JSON.

const PAGE = 25;
const trials = { sort: 'rank', down: false, page: 0, words: '', status: 'any' };

/* Columns: key, title, the number or text to sort by, the text to show. */
function trialColumns(s) {
    const list = [
        { key: 'trial', title: 'Trial', of: (r) => s.trial[r], text: (r) => String(s.trial[r]) },
        { key: 'status', title: 'Status', of: (r) => s.status[r], text: (r) => s.statusText(r) },
    ];
    s.about.objectives.forEach((o, i) => o.is || list.push({ key: `objective.${o.name}`, title: o.name,
        number: true, of: (r) => s.objectives[i][r], text: (r) => plain(s.objectives[i][r], 6) }));
    [...new Set([...s.about.objectives.map((o) => o.is), ...data.metrics, 'mfu', 'exposed_s', 'bubble_s'])]
        .filter((key) => key in s.results && s.has(key)).forEach((key) => {
        const { title, unit } = data.results[key];
        list.push({ key, title, number: true, of: (r) => s.results[key][r],
            text: (r) => (key === 'mfu' ? percent(s.results[key][r])
                : quantity(s.results[key][r], unit, 5)) });
    });
    s.about.knobs.forEach((knob, k) => list.push({ key: knob.name, title: shortKnob(knob.name),
        of: (r) => s.knobs[k][r], text: (r) => s.knobText(r, k), knob: k }));
    return list;
}

/* "dp=64 latency<2": every word must hold; a bare word must stand in the row. */
function wordTests(columns, words) {
    return words.trim().split(/\s+/).filter(Boolean).map((word) => {
        const found = word.match(/^(.+?)(<=|>=|!=|=|<|>)(.*)$/);
        if (!found) {
            const lower = word.toLowerCase();
            return (row) => columns.some((c) => c.text(row).toLowerCase().includes(lower));
        }
        const [, name, sign, value] = found;
        const column = columns.find((c) => c.key === name || c.title === name
            || c.key.toLowerCase().includes(name.toLowerCase()));
        if (!column) return () => false;
        return comparison(column, sign, value);
    });
}

function comparison(column, sign, value) {
    const number = Number(value);
    const read = (row) => (column.number || column.key === 'trial' ? column.of(row)
        : Number.parseFloat(column.text(row)));
    if (sign === '=') return (row) => column.text(row) === value || read(row) === number;
    if (sign === '!=') return (row) => column.text(row) !== value && read(row) !== number;
    if (sign === '<') return (row) => read(row) < number;
    if (sign === '<=') return (row) => read(row) <= number;
    if (sign === '>') return (row) => read(row) > number;
    return (row) => read(row) >= number;
}

/* Best first: feasible, then the objective, then the number. */
function byRank(s) {
    const sign = s.maximize ? -1 : 1;
    return (a, b) => s.status[a] - s.status[b]
        || sign * (s.objectives[0][a] - s.objectives[0][b]) || s.trial[a] - s.trial[b];
}

function trialRows(s, columns) {
    const tests = wordTests(columns, trials.words);
    if (state.filter) tests.push(state.filter);
    if (trials.status !== 'any') tests.push((row) => s.statusText(row) === trials.status);
    const rows = [];
    for (let row = 0; row < s.n; row++) if (tests.every((test) => test(row))) rows.push(row);
    const column = columns.find(({ key }) => key === trials.sort);
    const sign = trials.down ? -1 : 1;
    const order = !column ? byRank(s) : (a, b) => {
        const [x, y] = [column.of(a), column.of(b)];
        const missing = Number(Number.isNaN(x)) - Number(Number.isNaN(y));
        return missing || sign * (x - y) || s.trial[a] - s.trial[b];
    };
    return rows.sort(order);
}

/* Numbers stand to the right; knobs are left out of print, where the table would not fit. */
function cellClass(column) {
    return column.knob !== undefined ? 'knob' : column.number ? 'number' : '';
}

function headCell(column, redrawn) {
    const sorted = trials.sort === column.key;
    return el('th', { scope: 'col', class: cellClass(column),
        'aria-sort': sorted ? (trials.down ? 'descending' : 'ascending') : 'none' },
    el('button', { type: 'button', class: 'sort', title: column.key, onclick: () => {
        Object.assign(trials, { sort: column.key, down: sorted && !trials.down, page: 0 });
        redrawn(column.key);
    } }, column.title, el('span', { 'aria-hidden': 'true' }, sorted ? (trials.down ? ' ▼' : ' ▲') : '')));
}

function bodyRow(s, columns, row) {
    const chosen = state.selected && state.selected.study === s.index && state.selected.row === row;
    return el('tr', { class: `${s.statusText(row)}${chosen ? ' chosen' : ''}`, 'data-row': row },
        columns.map((column, i) => {
            if (i > 0) return el('td', { class: cellClass(column) }, column.text(row));
            return el('th', { scope: 'row' }, el('button', { type: 'button', class: 'link',
                onclick: () => choose({ selected: { study: s.index, row } }) }, column.text(row)));
        }));
}

/* Values as they are, for files: numbers in full, knobs as text. */
function fileValue(column, row) {
    if (column.knob !== undefined || column.key === 'status') return column.text(row);
    const value = column.of(row);
    return Number.isFinite(value) ? value : null;
}

function saveTrials(s, columns, rows, format) {
    const base = s.about.name.replace(/[^A-Za-z0-9._-]+/g, '-') || 'trials';
    if (format === 'csv') {
        save(`${base}-trials.csv`, 'text/csv', toCsv(columns.map(({ key }) => key),
            rows.map((row) => columns.map((column) => fileValue(column, row)))));
        return;
    }
    save(`${base}-trials.json`, 'application/json', JSON.stringify(rows.map((row) =>
        Object.fromEntries(columns.map((column) => [column.key, fileValue(column, row)])))));
}

function pager(n, turn) {
    const pages = Math.max(1, Math.ceil(n / PAGE));
    const go = (page) => turn(Math.min(pages - 1, Math.max(0, page)));
    const button = (text, label, page, off) => el('button', { type: 'button', class: 'quiet',
        'aria-label': label, disabled: off, onclick: () => go(page) }, text);
    const last = trials.page >= pages - 1;
    return el('div', { class: 'pager' },
        button('«', 'First page', 0, trials.page === 0),
        button('‹', 'Previous page', trials.page - 1, trials.page === 0),
        el('span', {}, `${trials.page + 1} of ${pages.toLocaleString('en-US')}`),
        button('›', 'Next page', trials.page + 1, last),
        button('»', 'Last page', pages - 1, last));
}

function renderTrials(root) {
    const s = study();
    const columns = trialColumns(s);
    const place = el('div', { id: 'trials-table' });
    const said = el('p', { class: 'note', 'aria-live': 'polite', id: 'trials-count' });
    let rows = [];
    const draw = (focus) => {
        rows = trialRows(s, columns);
        trials.page = Math.min(trials.page, Math.max(0, Math.ceil(rows.length / PAGE) - 1));
        const page = rows.slice(trials.page * PAGE, (trials.page + 1) * PAGE);
        said.textContent = `${plural(rows.length, 'trial')} of ${s.n.toLocaleString('en-US')}${
            state.filter ? ' pass the marks on the axes' : ''}`;
        place.replaceChildren(
            el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Trials' },
                el('table', { class: 'trials' },
                    el('thead', {}, el('tr', {}, columns.map((c) => headCell(c, draw)))),
                    el('tbody', {}, page.map((row) => bodyRow(s, columns, row))))),
            pager(rows.length, (to) => {
                trials.page = to;
                draw();
            }));
        if (focus) place.querySelector(`[title="${CSS.escape(focus)}"]`)?.focus();
    };
    Object.assign(trials, { sort: 'rank', down: false, page: 0, words: '', status: 'any' });
    root.replaceChildren(
        el('div', { class: 'controls' },
            el('label', { class: 'pick grow' }, 'Filter', el('input', { type: 'search',
                placeholder: 'dp=64 latency_s<2 ring', oninput: (e) => {
                    Object.assign(trials, { words: e.target.value, page: 0 });
                    draw();
                } })),
            select('Status', [['any', 'any'], ...data.head.statuses.map((x) => [x, x])], 'any',
                (status) => {
                    Object.assign(trials, { status, page: 0 });
                    draw();
                }),
            el('button', { type: 'button', class: 'quiet',
                onclick: () => saveTrials(s, columns, rows, 'csv') }, 'Save CSV'),
            el('button', { type: 'button', class: 'quiet',
                onclick: () => saveTrials(s, columns, rows, 'json') }, 'Save JSON')),
        said, place);
    draw();
    trials.draw = draw;
}

follow((change) => {
    if (trials.draw && ('filter' in change || 'selected' in change)) {
        if ('filter' in change) trials.page = 0;
        trials.draw();
    }
});
