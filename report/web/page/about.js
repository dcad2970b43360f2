// SPDX-License-Identifier: GPL-3.0-or-later
//
// What was searched, what was rejected and why, and where the numbers come from.

function shareOf(part_, whole) {
    const [a, b] = [BigInt(part_), BigInt(whole)];
    return b === 0n ? NaN : Number((a * 1000000n) / b) / 1e6;
}

function barRow(label, share, text) {
    return el('div', { class: 'barrow' }, el('span', { class: 'barname' }, label),
        el('span', { class: 'bartrack', 'aria-hidden': 'true' },
            el('span', { style: { width: `${Math.max(0.4, 100 * Math.min(1, share || 0))}%` } })),
        el('span', { class: 'barvalue' }, text));
}

function trialReasons(s) {
    const { counts } = s.about;
    const rows = s.about.reasons.filter(({ text }) => text).sort((a, b) => b.trials - a.trials).slice(0, 12);
    const rejected = counts.infeasible + counts.failed + counts.invalid;
    if (!counts.trials) return [el('p', { class: 'note' }, 'There is no trial.')];
    if (!rejected) return [el('p', { class: 'note' }, 'Every trial was feasible.')];
    return [
        el('p', { class: 'lede' }, `Of ${plural(counts.trials, 'trial')}: ${counts.infeasible.toLocaleString('en-US')
        } infeasible, ${counts.failed.toLocaleString('en-US')} failed, ${counts.invalid.toLocaleString('en-US')
        } invalid. Numbers in reasons are left out, so that equal ones count together.`),
        ...rows.map(({ text, trials: n }) => barRow(text, n / counts.trials,
            `${n.toLocaleString('en-US')} (${percent(n / counts.trials)})`)),
    ];
}

function constraintReasons(s) {
    const list = s.about.constraints.filter(({ removes }) => removes && removes !== '0')
        .map((c) => ({ ...c, share: shareOf(c.removes, s.about.raw_points) }))
        .sort((a, b) => b.share - a.share);
    if (!list.length) return [el('p', { class: 'note' }, 'No constraint removes a point.')];
    return [
        el('p', { class: 'lede' }, `Of ${count(s.about.raw_points)} combinations of values, ${
            count(s.about.valid_points)} are valid (${percent(shareOf(s.about.valid_points, s.about.raw_points))
        }). Only those are ever proposed. What each constraint alone would remove:`),
        ...list.map(({ text, implied, share }) => barRow(`${text}${implied ? ' (implied)' : ''}`, share, percent(share))),
    ];
}

function renderRejections(root) {
    const s = study();
    root.replaceChildren(el('h3', {}, 'Trials'), ...trialReasons(s),
        dataButtons('rejections', () => ['reason', 'trials'], () => s.about.reasons.filter(({ text }) => text)
            .map((r) => [r.text, r.trials])),
        el('h3', {}, 'Before the search'), ...constraintReasons(s),
        dataButtons('constraints', () => ['constraint', 'implied', 'removes'], () => s.about.constraints
            .map((c) => [c.text, c.implied, c.removes ?? null])));
}

function reproduceLine(s) {
    const a = s.about;
    const words = ['cosmic-search run', quote(a.psa), `--agent ${quote(a.agent)}`,
        ...a.params.split(/[,\s]+/).filter(Boolean).map((p) => `--param ${quote(p)}`),
        `--evaluations ${a.evaluations}`, `--seed ${a.seed}`,
        ...a.stacks.split('\n').filter(Boolean).map((x) => `--stack ${quote(x)}`),
        ...a.fixes.split('\n').filter(Boolean).map((x) => `--fix ${quote(x)}`)];
    return words.join(' ');
}

function quote(text) {
    return /^[A-Za-z0-9_./=:@%+,-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`;
}

function knobTable(s) {
    const rows = [...knobGroups(s)].map(([stem, knobs]) => {
        const { values } = s.about.knobs[knobs[0]];
        const text = values.length > 10 ? `${values.slice(0, 4).join(', ')}, … ${values[values.length - 1]}`
            : values.join(', ');
        return [stem, knobs.length > 1 ? `${values.length} for each of ${knobs.length}` : String(values.length), text];
    });
    return simpleTable(['Knob', 'Values', ''], rows);
}

function originTable(s) {
    const a = s.about;
    return simpleTable(['', ''], [
        ['Study', a.file], ['PSA file', a.psa], ['Hash of the inputs', a.hash], ['Program', `cosmic-search ${a.version}`],
        ['Agent', `${a.agent}${a.params ? ` (${a.params})` : ''}`], ['Seed', a.seed],
        ['Budget', `${Number(a.evaluations).toLocaleString('en-US')} evaluations`],
        ['Objectives', a.objectives.map((o) => `${o.maximize ? 'maximize' : 'minimize'} ${o.name}: ${o.text}`).join('; ')],
        ['Trials shown', a.counts.shown < a.counts.trials
            ? `${a.counts.shown.toLocaleString('en-US')} of ${a.counts.trials.toLocaleString('en-US')}: thinned `
                + 'evenly; the best, every improvement and every front are complete' : 'all'],
        ['Reproduce', el('code', {}, reproduceLine(s))],
    ]);
}

function renderAbout(root) {
    const s = study();
    root.replaceChildren(originTable(s), el('h3', {}, 'Workloads'),
        simpleTable(['Model', 'Parameters', 'Mode', 'Global batch', 'Sequence', 'Weight'],
            s.about.workloads.map((w) => [w.model, plain(w.parameters, 4), w.mode, plain(w.global_batch),
                plain(w.sequence), plain(w.weight)])),
        el('h3', {}, `Knobs: ${plural(s.about.knobs.length, 'variable')}`), knobTable(s),
        el('details', {}, el('summary', {}, plural(s.about.constraints.length, 'constraint')),
            simpleTable(['Constraint', 'Origin', 'Removes'], s.about.constraints.map((c) => [
                el('code', {}, c.text), c.implied ? 'implied' : 'written', c.limit ? 'decides feasibility'
                    : c.removes === undefined ? '–' : percent(shareOf(c.removes, s.about.raw_points))]))));
}
