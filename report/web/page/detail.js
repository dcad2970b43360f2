// SPDX-License-Identifier: GPL-3.0-or-later
//
// The chosen design: all its values, beside those of the baseline.

function baselineKnob(s, stem, index) {
    const value = s.about.baseline.config[stem];
    const one = Array.isArray(value) ? value[index] : value;
    return one === undefined || one === null ? '–' : one;
}

/* A knob's value as the baseline's configuration states it: quantities are in SI there. */
function sameAsBaseline(s, stem, index, text) {
    const base = baselineKnob(s, stem, index);
    if (typeof base !== 'number') return String(base) === text;
    const found = text.match(/^([-0-9.e+]+)\s*([A-Za-z/µ$]*)$/);
    if (!found) return false;
    const factor = { '': 1, 'GB/s': 1e9, 'MB/s': 1e6, 'TB/s': 1e12, GB: 1e9, TB: 1e12, GiB: 2 ** 30,
        s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, 'TFLOP/s': 1e12, 'PFLOP/s': 1e15 }[found[2]];
    return factor !== undefined && Math.abs(Number(found[1]) * factor - base) <= 1e-9 * Math.abs(base);
}

function knobRows(s, row) {
    return [...knobGroups(s)].map(([stem, knobs]) => {
        const texts = knobs.map((k) => s.knobText(row, k));
        const same = texts.every((text, i) => text === '–' || sameAsBaseline(s, stem, i, text));
        return el('tr', { class: same ? '' : 'changed' }, el('th', { scope: 'row' }, stem),
            el('td', {}, texts.join(', ')), el('td', { class: 'dim' }, same ? 'as the baseline' : 'changed'));
    });
}

function resultRows(s, row) {
    const line = (title, text, base) => el('tr', {}, el('th', { scope: 'row' }, title), el('td', {}, text),
        el('td', { class: 'dim' }, base));
    const objectives = s.about.objectives.map((o, i) => o.is ? null : line(o.name, plain(s.objectives[i][row], 8),
        plain(s.about.baseline.objectives[o.name] ?? NaN, 6)));
    return [...objectives.filter(Boolean), ...data.head.results.filter(({ key }) => Number.isFinite(s.results[key][row]))
        .map(({ key, title, unit }) => line(title,
            key === 'mfu' ? percent(s.results[key][row]) : quantity(s.results[key][row], unit, 6),
            key === 'mfu' ? percent(s.about.baseline.mfu) : quantity(s.about.baseline[key] ?? NaN, unit)))];
}

function renderDetail(root) {
    const chosen = state.selected;
    root.hidden = !chosen;
    if (!chosen) return;
    const s = data.all[chosen.study];
    const { row } = chosen;
    const reason = s.about.reasons[s.reason[row]];
    root.replaceChildren(
        el('header', {},
            el('h3', {}, `Trial ${s.trial[row]}`),
            el('span', { class: 'tag' }, s.statusText(row)),
            Number.isFinite(s.gain(row)) && el('span', { class: 'tag' }, s.gain(row) >= 1
                ? `${plain(s.gain(row), 3)} × better than the baseline` : `${plain(1 / s.gain(row), 3)} × worse`),
            el('button', { type: 'button', class: 'quiet', 'aria-label': 'Close',
                onclick: () => choose({ selected: null }) }, 'Close')),
        reason && reason.text ? el('p', { class: 'bad' }, reason.text) : '',
        el('div', { class: 'two' },
            el('table', {}, el('thead', {}, el('tr', {}, ['Result', 'Design', 'Baseline'].map((x) =>
                el('th', { scope: 'col' }, x)))), el('tbody', {}, resultRows(s, row))),
            el('table', {}, el('thead', {}, el('tr', {}, ['Knob', 'Value', 'Against the baseline'].map((x) =>
                el('th', { scope: 'col' }, x)))), el('tbody', {}, knobRows(s, row)))));
}
