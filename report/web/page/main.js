// SPDX-License-Identifier: GPL-3.0-or-later
//
// The page: a result in one sentence, then its sections.

const SECTIONS = [
    ['designs', 'Best designs', renderCards],
    ['why', 'Why they are good', renderExplain],
    ['history', 'Search history', renderHistory],
    ['tradeoffs', 'Trade-offs', renderPareto],
    ['space', 'Designs side by side', renderParallel],
    ['trials', 'Trials', renderTrials],
    ['knobs', 'Which knobs matter', renderImportance],
    ['rejections', 'What was rejected', renderRejections],
    ['about', 'What was searched', renderAbout],
];
const NAV = { designs: 'Designs', why: 'Why', history: 'History', tradeoffs: 'Trade-offs', space: 'Axes', trials: 'Trials',
    knobs: 'Knobs', rejections: 'Rejected', about: 'About' };

function headline(s) {
    const a = s.about;
    const [objective] = a.objectives;
    if (s.best < 0) {
        return a.counts.trials === 0 ? 'The study has no trial yet.'
            : `None of ${plural(a.counts.trials, 'trial')} is feasible.`;
    }
    const gain = s.gain(s.best);
    const parts = [`Trial ${s.trial[s.best]} is the best of ${plural(a.counts.trials, 'design')} evaluated`];
    if (Number.isFinite(gain)) parts.push(`, ${plain(gain >= 1 ? gain : 1 / gain, 3)} × ${gain >= 1 ? 'better' : 'worse'} than the baseline in ${
            objective.name}`);
    parts.push('.');
    if (typeof a.bound === 'number') {
        const best = s.objectives[0][s.best];
        const gap = Math.abs(best - a.bound) / Math.abs(best);
        parts.push(gap < 1e-9 ? ' It is proven optimal.' : ` It is proven to be within ${percent(gap)} of the optimum.`);
    }
    return parts.join('');
}

function tile(title, value, note) {
    return el('div', { class: 'tile' }, el('span', {}, title), el('b', {}, value), el('small', {}, note || ''));
}

function tiles(s) {
    const a = s.about;
    const list = [];
    if (s.best >= 0) {
        const base = a.baseline;
        const row = s.best;
        list.push(
            tile('Latency', quantity(s.results.latency_s[row], 's'), `baseline ${quantity(base.latency_s ?? NaN, 's')}`),
            tile('Bandwidth per NPU', quantity(s.results.bandwidth_per_npu_bytes_per_s[row], 'B/s'),
                `baseline ${quantity(base.bandwidth_per_npu_bytes_per_s ?? NaN, 'B/s')}`),
            tile('Network cost', quantity(s.results.network_cost_usd[row], '$', 3),
                `baseline ${quantity(base.network_cost_usd ?? NaN, '$', 3)}`),
            tile('MFU', percent(s.results.mfu[row]), `baseline ${percent(base.mfu)}`));
    }
    list.push(
        tile('Feasible trials', percent(a.counts.trials ? a.counts.feasible / a.counts.trials : NaN),
            `${a.counts.feasible.toLocaleString('en-US')} of ${a.counts.trials.toLocaleString('en-US')}`),
        tile('Valid designs', count(a.valid_points), `of ${count(a.raw_points)} combinations`));
    return el('div', { class: 'tiles' }, list);
}

function workloadWords(s) {
    return s.about.workloads.map((w) => `${w.model}, ${w.mode}, batch ${w.global_batch.toLocaleString('en-US')} × ${
        w.sequence.toLocaleString('en-US')} tokens`).join('; ');
}

function studyPicker() {
    if (data.all.length < 2) return null;
    const t = theme();
    return el('div', { class: 'controls', role: 'group', 'aria-label': 'Study' }, el('span', {}, 'Study'),
        data.all.map((s, i) => el('button', { type: 'button', class: i === state.study ? 'on' : 'quiet',
            'aria-pressed': i === state.study ? 'true' : 'false', onclick: () => {
                state.study = i;
                state.selected = null;
                renderAll();
            } }, el('i', { class: 'dot', style: { background: t.series[i % t.series.length] } }), s.name)));
}

function renderHead(root) {
    const s = study();
    const { counts } = s.about;
    root.replaceChildren(
        el('p', { class: 'eyebrow' }, workloadWords(s)), el('h1', {}, s.about.name),
        el('p', { class: 'headline' }, headline(s)), tiles(s), studyPicker() || '',
        data.head.missing ? el('p', { class: 'note' },
            `This report has tables in place of charts: ${data.head.missing}.`) : '',
        counts.shown < counts.trials ? el('p', { class: 'note', id: 'thinned' }, `The page holds ${
            counts.shown.toLocaleString('en-US')} of ${counts.trials.toLocaleString('en-US')} trials, thinned `
            + 'evenly; the best, every improvement and every front are complete.') : '');
}

const roots = new Map();

function renderAll() {
    renderHead(roots.get('head'));
    for (const [id, , render] of SECTIONS) render(roots.get(id));
    renderDetail(roots.get('detail'));
}

/* Footer, theme, printing and resizing: the same for every page. */
function frame() {
    document.getElementById('footer').replaceChildren(el('p', {}, `Made by cosmic-search ${data.head.version}. `
        + 'Latency of training is one optimizer step. GB is 10⁹ bytes. Everything this page shows is in it: it asks '
        + 'for nothing from a network.'));
    document.getElementById('theme').addEventListener('click', () => {
        document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
        redrawAll();
    });
    darkQuery.addEventListener('change', redrawAll);
    let width = window.innerWidth;
    let timer = 0;
    window.addEventListener('resize', () => {
        if (window.innerWidth === width) return;
        width = window.innerWidth;
        clearTimeout(timer);
        timer = setTimeout(redrawAll, 120);
    });
    let chosen;
    window.addEventListener('beforeprint', () => {
        chosen = document.documentElement.dataset.theme;
        document.documentElement.dataset.theme = 'light';
        redrawAll();
    });
    window.addEventListener('afterprint', () => {
        if (chosen) document.documentElement.dataset.theme = chosen;
        else delete document.documentElement.dataset.theme;
        redrawAll();
    });
}

function build() {
    const main = document.getElementById('main');
    const head = el('section', { class: 'head' });
    const detail = el('aside', { id: 'detail', class: 'detail', 'aria-live': 'polite', 'aria-label': 'Chosen design',
        hidden: true });
    roots.set('head', head);
    roots.set('detail', detail);
    main.replaceChildren(head);
    for (const [id, title] of SECTIONS) {
        const body = el('div', { class: 'body' });
        roots.set(id, body);
        main.append(el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), body));
    }
    main.append(detail);
    document.getElementById('nav').replaceChildren(...SECTIONS.map(([id]) => el('a', { href: `#${id}` }, NAV[id])));
}

function startStudies() {
    data.all = data.studies.map((one, index) => new Study(one, index));
    build();
    startAxes();
    follow((change) => {
        if ('selected' in change) renderDetail(roots.get('detail'));
    });
    renderAll();
    window.addEventListener('keydown', (e) => {
        if (e.key === 'Escape' && state.selected) choose({ selected: null });
    });
}

frame();
if (data.compare) buildCompare();
else startStudies();
window.report = { data, state, charts, choose };
document.documentElement.dataset.ready = 'true';
