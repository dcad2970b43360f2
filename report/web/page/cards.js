// SPDX-License-Identifier: GPL-3.0-or-later
//
// The best designs beside the system's baseline.

/* A stacked bar of parts; `whole` is the value of its full width. */
function stackedBar(trial, parts, whole, unit, label) {
    const bar = el('div', { class: 'stack', role: 'img' });
    const said = [];
    for (const [path, title, colour] of parts) {
        const value = part(trial, path);
        if (!(value > 0)) continue;
        const text = `${title} ${quantity(value, unit, 3)}`;
        said.push(text);
        const piece = el('span', { title: text, style: { background: colour,
            width: `${((100 * value) / whole).toFixed(3)}%` } });
        if (title === 'bubble' || title === 'transient') piece.className = 'hatched';
        bar.append(piece);
    }
    bar.setAttribute('aria-label', `${label}: ${said.join(', ')}`);
    return bar;
}

/* The parts that matter, largest first, in words. */
function partWords(trial, parts, unit, most = 3) {
    return parts.map(([path, title, colour]) => ({ title, colour, value: part(trial, path) }))
        .filter(({ value }) => value > 0)
        .sort((a, b) => b.value - a.value)
        .slice(0, most)
        .map(({ title, colour, value }) => el('span', { class: 'key' },
            el('i', { style: { background: colour } }), `${title} ${quantity(value, unit, 3)}`));
}

function memoryBar(trial) {
    const capacity = trial.config['compute.memory_capacity'];
    const whole = Math.max(capacity, trial.peak_memory_bytes) || 1;
    const over = trial.peak_memory_bytes > capacity;
    return el('div', { class: over ? 'meter over' : 'meter' },
        el('div', { class: 'row' }, el('span', {}, 'Memory'),
            el('b', {}, `${quantity(trial.peak_memory_bytes, 'B', 3)} of ${
                quantity(capacity, 'B', 3)}`)),
        el('div', { class: 'track' },
            stackedBar(trial, MEMORY_PARTS, whole, 'B', 'Memory by part'),
            over && el('span', { class: 'limit', style: { left: `${(100 * capacity) / whole}%` },
                title: 'capacity' })),
        el('div', { class: 'words' }, partWords(trial, MEMORY_PARTS, 'B')));
}

function timeBar(trial, longest) {
    return el('div', { class: 'meter' },
        el('div', { class: 'row' }, el('span', {}, 'Time'),
            el('b', {}, quantity(trial.latency_s, 's'))),
        el('div', { class: 'track' },
            stackedBar(trial, TIME_PARTS, longest, 's', 'Time by part')),
        el('div', { class: 'words' }, partWords(trial, TIME_PARTS, 's')));
}

function splitChips(config) {
    const axes = [['dp', 'data'], ['tp', 'tensor'], ['sp', 'sequence'], ['pp', 'pipeline'],
        ['ep', 'expert']];
    return el('ul', { class: 'split', 'aria-label': 'Split' }, axes
        .filter(([axis]) => axis !== 'ep' || config['workload.ep'] > 1)
        .map(([axis, title]) => el('li', { title: `${title} parallel`,
            class: config[`workload.${axis}`] > 1 ? '' : 'one' },
        el('span', {}, axis), el('b', {}, String(config[`workload.${axis}`])))));
}

function settings(config) {
    const words = [
        `sharding ${config['workload.sharding']}`,
        `recompute ${config['workload.recompute']}`,
        `micro-batch ${config['workload.micro_batch']}`,
        config['workload.pp'] > 1 ? config['workload.schedule'] : null,
    ];
    const collectives = [config['collective.multi_dim'],
        plural(config['collective.chunks'], 'chunk'), config['collective.scheduling'],
        `placed ${config.placement}`];
    return el('dl', { class: 'facts' },
        el('dt', {}, 'State'), el('dd', {}, words.filter(Boolean).join(', ')),
        el('dt', {}, 'Collectives'), el('dd', {}, collectives.join(', ')));
}

function figures(trial) {
    const one = (title, text) => el('div', {}, el('span', {}, title), el('b', {}, text));
    return el('div', { class: 'figures' },
        one('Bandwidth per NPU', quantity(trial.bandwidth_per_npu_bytes_per_s, 'B/s', 3)),
        one('Network cost', trial.network_cost_usd === null ? 'no price'
            : quantity(trial.network_cost_usd, '$', 3)),
        one('MFU', percent(trial.mfu)),
        typeof trial.ttft_s === 'number' && one('First token', quantity(trial.ttft_s, 's', 3)),
        typeof trial.tpot_s === 'number' && one('Each token', quantity(trial.tpot_s, 's', 3)),
        typeof trial.energy_j === 'number' && one('Energy', quantity(trial.energy_j, 'J', 3)));
}

/* What takes the most time, in one sentence. */
function limitWords(trial) {
    const parts = TIME_PARTS.map(([path, title]) => [title, part(trial, path)])
        .filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
    if (!parts.length) return '';
    const [title, value] = parts[0];
    const what = title === 'compute' || title === 'bubble' || title === 'idle' ? title
        : `communication (${title})`;
    return `Limited by ${what}: ${percent(value / trial.latency_s)} of the step.`;
}

function objectiveLine(trial, s, gain) {
    const [objective] = s.about.objectives;
    return el('p', { class: 'score' }, el('span', {}, objective.name),
        el('b', {}, objectiveText(objective, trial.objectives[objective.name] ?? NaN, 5)),
        Number.isFinite(gain) && el('em', { class: gain >= 1 ? 'good' : 'bad' },
            gain >= 1 ? `${plain(gain, 3)} × better` : `${plain(1 / gain, 3)} × worse`));
}

function failedCard(title, trial) {
    return el('article', { class: 'card base' }, el('h3', {}, title),
        el('p', { class: 'note' }, `No result: ${trial.reason || trial.status}.`));
}

function card({ title, note, trial, gain, kind, row }, s, scale) {
    if (typeof trial.latency_s !== 'number') return failedCard(title, trial);
    return el('article', { class: `card ${kind || ''}` },
        el('header', {}, el('h3', {}, title), note && el('span', { class: 'tag' }, note)),
        objectiveLine(trial, s, gain),
        timeBar(trial, scale.longest),
        memoryBar(trial),
        splitChips(trial.config),
        drawNetwork(trial.config, scale.bandwidth),
        figures(trial), settings(trial.config),
        el('p', { class: 'limits' }, limitWords(trial)),
        trial.feasible ? null : el('p', { class: 'bad' }, `Infeasible: ${trial.reason || ''}`),
        row !== undefined && el('button', { type: 'button', class: 'quiet',
            onclick: () => choose({ selected: { study: s.index, row } }) }, 'All values'));
}

/* Baseline, best, knee and ends of the front, then the next best ones that differ from those. */
function cardList(s) {
    const list = [{ title: 'Baseline', note: 'of the system', trial: s.about.baseline,
        kind: 'base' }];
    const used = [];
    const add = (row, title, kind) => {
        const trial = s.designs.get(row);
        if (!trial || used.some((other) => alike(s.designs.get(other), trial))) return;
        used.push(row);
        list.push({ title, note: `trial ${s.trial[row]}`, trial, kind, row, gain: s.gain(row) });
    };
    if (s.best >= 0) add(s.best, 'Best', 'best');
    s.about.nearest.forEach((row, i) => add(row, i === 0 ? 'Nearest to feasible' : `Next nearest, ${i + 1}`));
    const { rows, knee, criteria } = s.about.front;
    if (knee !== undefined) add(rows[knee], 'Knee of the front');
    if (criteria.length === 2 && rows.length > 1) {
        add(rows[0], `Best ${criterionWords(criteria[0])} found`);
        add(rows[rows.length - 1], `Best ${criterionWords(criteria[1])} found`);
    }
    s.about.top.slice(1).forEach((row, i) => {
        if (list.length < 6) add(row, `Rank ${i + 2}`);
    });
    return list;
}

function criterionWords({ name }) {
    return name.replaceAll('_', ' ');
}

/* Whether two designs are the same for a reader: same split, same network, same time. */
function alike(a, b) {
    const shown = (t) => JSON.stringify([t.latency_s?.toPrecision(3), t.network_cost_usd?.toPrecision(3),
        ...['dp', 'tp', 'sp', 'pp', 'ep'].map((axis) => t.config[`workload.${axis}`])]);
    return shown(a) === shown(b);
}

function legend(parts, trials) {
    return el('p', { class: 'legend' }, parts
        .filter(([path]) => trials.some((trial) => part(trial, path) > 0))
        .map(([, title, colour]) => el('span', { class: 'key' },
            el('i', { style: { background: colour } }), title)));
}

function renderCards(root) {
    const s = study();
    const cards = cardList(s);
    const trials = cards.map(({ trial }) => trial).filter((t) => typeof t.latency_s === 'number');
    const scale = {
        longest: Math.max(0, ...trials.map((t) => t.latency_s)) || 1,
        bandwidth: Math.max(0, ...trials.flatMap((t) => t.config['network.bandwidth'])),
    };
    root.replaceChildren(
        el('p', { class: 'lede' }, s.best >= 0 ? 'Bars of time share one scale; bars of memory end at the capacity.'
            : s.about.nearest.length ? 'No feasible design was found; these violate the limits least.'
                : 'No feasible design was found.'),
        legend(TIME_PARTS, trials),
        el('div', { class: 'cards' }, cards.map((one) => card(one, s, scale))));
}
