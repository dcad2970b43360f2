// SPDX-License-Identifier: GPL-3.0-or-later
//
// Why the best designs are good: what limits them, what they are sensitive to, which NPUs talk to
// each other, and what one change would do.

const QUANTITIES = { 'compute.peak': 'compute peak', 'compute.memory_bandwidth': 'memory bandwidth',
    'network.bandwidth': 'bandwidth', 'network.latency': 'hop latency' };

function quantityName(name) {
    const [, stem, d] = name.match(/^(.*?)(?:\[(\d+)\])?$/);
    const words = QUANTITIES[stem] || shortKnob(stem);
    return d ? `${words}, dimension ${d}` : words;
}

/* Changes of latency for -10 % and +10 % of each quantity, as two bars around a line. */
function sensitivityBars(list, latency) {
    const shares = list.map((q) => ({ name: quantityName(q.quantity),
        lower: q.latency_lower_s / latency - 1, higher: q.latency_higher_s / latency - 1 }))
        .filter(({ lower, higher }) => Number.isFinite(lower) && Number.isFinite(higher));
    const seen = shares.filter(({ lower, higher }) => Math.max(Math.abs(lower), Math.abs(higher)) >= 5e-4);
    const most = Math.max(1e-6, ...shares.flatMap((q) => [Math.abs(q.lower), Math.abs(q.higher)]));
    const bar = (share, kind) => el('span', { class: kind, style: {
        left: `${50 + Math.min(0, (50 * share) / most)}%`, width: `${(50 * Math.abs(share)) / most}%` } });
    const signed = (share) => `${share > 0 ? '+' : share < 0 ? '−' : ''}${percent(Math.abs(share), 2)}`;
    return el('div', { class: 'tornado', role: 'table', 'aria-label': 'Sensitivity of latency' },
        el('div', { class: 'tornadorow head', role: 'row' }, el('span', { role: 'columnheader' }, ''),
            el('span', { class: 'num lowerkey', role: 'columnheader' }, '10 % less'),
            el('span', { role: 'columnheader' }, ''),
            el('span', { class: 'num higherkey', role: 'columnheader' }, '10 % more')),
        seen.map((q) => el('div', { class: 'tornadorow', role: 'row' },
            el('span', { role: 'cell' }, q.name), el('span', { class: 'num', role: 'cell' }, signed(q.lower)),
            el('span', { class: 'tornadobar', role: 'cell', 'aria-hidden': 'true' }, bar(q.lower, 'lower'),
                bar(q.higher, 'higher')),
            el('span', { class: 'num', role: 'cell' }, signed(q.higher)))),
        seen.length < shares.length && el('p', { class: 'note' }, `${seen.length ? 'The others' : 'All'} change it by less `
            + 'than 0.05 %.'));
}

function changeTable(s, list) {
    if (!list || !list.length) return el('p', { class: 'note' }, 'No other value of any variable is feasible.');
    const better = list.filter(({ ratio }) => (s.maximize ? ratio > 1 : ratio < 1));
    const words = better.length
        ? `Changing ${better[0].change} alone would improve ${s.about.objectives[0].name} by ${
            percent(Math.abs(1 - better[0].ratio))}: the search had not finished.`
        : 'No change of one variable improves it: it is the best of its neighbourhood.';
    return [el('p', {}, words), simpleTable(['Best other value of a variable', s.about.objectives[0].name],
        list.slice(0, 8).map((c) => [c.change.replaceAll('->', '→'),
            `${plain(c.ratio, 4)} × of now`]))];
}

function groupTable(list) {
    if (!list || !list.length) return el('p', { class: 'note' }, 'There are no groups of more than one NPU.');
    return simpleTable(['Axis', 'NPUs', 'First group', 'Where'], list.map((g) => [g.axis, String(g.size),
        g.first_group, g.spans]));
}

/* The parts of time that differ most from the other design, in words. */
function whyBetter(s, why, trial) {
    const other = why.against === 'the baseline' ? s.about.baseline : s.designs.get(s.best);
    if (!other || typeof other.latency_s !== 'number') return null;
    const parts = TIME_PARTS.map(([path, title]) => [title, part(trial, path) - part(other, path)])
        .filter(([, by]) => Math.abs(by) > 0.005 * other.latency_s).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const ratio = other.latency_s / trial.latency_s;
    const words = parts.slice(0, 4).map(([title, by]) => `${quantity(Math.abs(by), 's', 3)} ${
        by < 0 ? 'less' : 'more'} ${title}`);
    return el('p', {}, `Latency is ${quantity(trial.latency_s, 's')}, that of ${why.against} ${
        quantity(other.latency_s, 's')} (${plain(ratio >= 1 ? ratio : 1 / ratio, 3)} × ${
        ratio >= 1 ? 'faster' : 'slower'})${words.length ? `: ${words.join(', ')}` : ''}.`);
}

function differenceTable(why) {
    const knobs = (why.difference || []).filter(({ difference }) => difference === null);
    if (!knobs.length) return null;
    return el('details', {}, el('summary', {}, `What is set otherwise than in ${why.against}`),
        simpleTable(['Setting', 'Here', why.against === 'the baseline' ? 'Baseline' : 'Best'],
            knobs.map((d) => [d.what, d.b, d.a])));
}

function explained(s, why, i) {
    const trial = s.designs.get(why.row);
    return el('details', { open: i === 0, class: 'why' },
        el('summary', {}, `${i === 0 ? 'Best' : `Rank ${i + 1}`}: trial ${s.trial[why.row]}`),
        el('p', {}, why.limit), whyBetter(s, why, trial), differenceTable(why),
        el('div', { class: 'two' },
            el('div', {}, el('h3', {}, 'Latency when one quantity changes'),
                sensitivityBars(why.sensitivity || [], trial.latency_s),
                dataButtons(`sensitivity of trial ${s.trial[why.row]}`, () => ['quantity', 'latency_lower_s', 'latency_higher_s',
                    'elasticity'], () => why.sensitivity.map((q) => [q.quantity, q.latency_lower_s, q.latency_higher_s,
                    q.elasticity]))),
            el('div', {}, el('h3', {}, 'Groups'), groupTable(why.groups))),
        el('h3', {}, 'One change'), changeTable(s, why.changes));
}

function renderExplain(root) {
    const s = study();
    const list = s.about.explain || [];
    root.replaceChildren(...(list.length ? list.map((why, i) => explained(s, why, i))
        : [el('p', { class: 'note' }, 'There is no feasible design to explain.')]));
}
