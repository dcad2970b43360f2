// SPDX-License-Identifier: GPL-3.0-or-later
//
// Trade-offs: any two metrics against each other, with the front and the knee.

const pareto = { x: 'latency_s', y: 'network_cost_usd', logX: true, logY: true, infeasible: true,
    near: false };
const CRITERION_KEYS = { latency: 'latency_s', bandwidth: 'bandwidth_per_npu_bytes_per_s',
    network_cost: 'network_cost_usd', peak_memory: 'peak_memory_bytes', energy: 'energy_j' };
const CROSS = 'path://M0,1 L1,0 L4,3 L7,0 L8,1 L5,4 L8,7 L7,8 L4,5 L1,8 L0,7 L3,4 Z';

function paretoMetrics() {
    return data.metrics.filter((key) => data.all.some((s) => s.has(key)));
}

/* Rows of the front of the two metrics in a study, and its knee. */
function paretoFront(s) {
    const [a, b] = [data.metrics.indexOf(pareto.x), data.metrics.indexOf(pareto.y)];
    const front = s.about.fronts[a < b ? `${a},${b}` : `${b},${a}`];
    if (!front) return { rows: [], knee: undefined };
    const rows = a < b ? front.rows : [...front.rows].reverse();
    const knee = front.knee === undefined ? undefined : front.rows[front.knee];
    return { rows, knee };
}

function paretoPoint(s, row) {
    return [s.results[pareto.x][row], s.results[pareto.y][row], row];
}

/* Points of all rows of a status; a value that is missing stands at the edge, if there is one. */
function cloud(s, wanted, edge = [NaN, NaN]) {
    const points = [];
    for (let row = 0; row < s.n; row++) {
        if (s.status[row] !== wanted) continue;
        const point = paretoPoint(s, row);
        const missing = [0, 1].filter((i) => !Number.isFinite(point[i]));
        if (missing.length === 2) continue;
        for (const i of missing) point[i] = edge[i];
        if (Number.isFinite(point[0]) && Number.isFinite(point[1])) points.push(point);
    }
    return points;
}

/* Where designs stand that were not simulated because they do not fit: beyond the greatest value. */
function edgeOf(key) {
    const missing = data.all.some((s) => s.status.some((status, row) => status === INFEASIBLE
        && !Number.isFinite(s.results[key][row])));
    const range = missing && pareto.infeasible ? paretoRange(key) : null;
    if (!range) return NaN;
    return range[0] > 0 ? range[1] * (range[1] / range[0]) ** 0.06 : range[1] + 0.06 * (range[1] - range[0]);
}

function paretoSeries(s, t, edge) {
    const colour = t.series[s.index % t.series.length];
    const front = paretoFront(s);
    const tip = { formatter: ({ value }) => designTip(s, value[2]) };
    const series = [{
        name: `${s.prefix}feasible`, id: `${s.index} feasible`, type: 'scatter', data: cloud(s, FEASIBLE), symbolSize: 6, z: 2,
        large: true, largeThreshold: 3000, itemStyle: { color: colour, opacity: 0.45 }, tooltip: tip,
    }, {
        name: `${s.prefix}front`, id: `${s.index} front`, type: 'line', step: 'end', z: 4, symbol: 'circle', symbolSize: 9,
        showSymbol: true, showAllSymbol: true, lineStyle: { color: colour, width: 2 },
        itemStyle: { color: colour, borderColor: t.paper, borderWidth: 1.5 },
        data: front.rows.map((row) => paretoPoint(s, row)), tooltip: tip    }];
    if (front.knee !== undefined) {
        series.push({ name: `${s.prefix}knee`, id: `${s.index} knee`, type: 'scatter', z: 5, symbol: 'circle',
            symbolSize: 18, data: [paretoPoint(s, front.knee)], tooltip: tip,
            itemStyle: { color: 'transparent', borderColor: t.ink, borderWidth: 2 } });
    }
    if (pareto.infeasible) {
        series.unshift({ name: `${s.prefix}infeasible`, id: `${s.index} infeasible`, type: 'scatter', z: 1, symbol: CROSS,
            symbolSize: 7, data: cloud(s, INFEASIBLE, edge), tooltip: tip, large: true,
            largeThreshold: 3000, itemStyle: { color: t.bad, opacity: 0.35 } });
    }
    return series;
}

/* The baseline, the best design and the chosen one. */
function paretoMarks(s, t) {
    const marks = [];
    const add = (name, symbol, value, colour, tip) => value.slice(0, 2).every(Number.isFinite)
        && marks.push({ name, id: `${s.index} ${name}`, type: 'scatter', z: 6, symbol, symbolSize: name === 'best' ? 22 : 15, data: [value],
            itemStyle: { color: colour, borderColor: t.paper, borderWidth: 1.5 }, tooltip: tip });
    const base = s.about.baseline;
    add('baseline', 'diamond', [base[pareto.x] ?? NaN, base[pareto.y] ?? NaN], t.ink,
        { formatter: () => el('div', { class: 'tip' }, el('b', {}, 'Baseline of the system')) });
    if (s.best >= 0) {
        add('best', 'path://M10,0 L13,7 L20,7 L14,12 L17,20 L10,15 L3,20 L6,12 L0,7 L7,7 Z',
            paretoPoint(s, s.best), t.series[4],
            { formatter: ({ value }) => designTip(s, value[2]) });
    }
    const chosen = state.selected;
    if (chosen && chosen.study === s.index) {
        marks.push({ name: 'chosen', id: 'chosen', type: 'scatter', z: 7, symbol: 'circle', symbolSize: 16,
            silent: true, data: [paretoPoint(s, chosen.row)],
            itemStyle: { color: 'transparent', borderColor: t.series[1], borderWidth: 3 } });
    }
    return marks;
}

function paretoRange(key) {
    const values = [];
    for (const s of data.all) {
        if (pareto.near) {
            values.push(...paretoFront(s).rows.map((row) => s.results[key][row]),
                s.about.baseline[key] ?? NaN);
            continue;
        }
        for (let row = 0; row < s.n; row++) {
            if (s.status[row] === FEASIBLE || (pareto.infeasible && s.status[row] === INFEASIBLE)) {
                values.push(s.results[key][row]);
            }
        }
        values.push(s.about.baseline[key] ?? NaN);
    }
    return span(values);
}

function paretoOption() {
    const t = theme();
    const edge = [edgeOf(pareto.x), edgeOf(pareto.y)];
    const axis = (key, log, end) => valueAxis(data.results[key].title, data.results[key].unit,
        span([...(paretoRange(key) || []), end]), log);
    return {
        ...baseOption(),
        legend: { type: 'scroll', top: 0, left: 0, right: 8, textStyle: { color: t.dim },
            pageTextStyle: { color: t.dim }, itemHeight: 9, itemWidth: 14 },
        grid: { left: 30, right: 26, top: 40, bottom: 36, containLabel: true },
        xAxis: { ...axis(pareto.x, pareto.logX, edge[0]), nameGap: 30 },
        yAxis: { ...axis(pareto.y, pareto.logY, edge[1]), nameGap: narrow() ? 52 : 64 },
        series: [...data.all.flatMap((s) => paretoSeries(s, t, edge)), ...paretoMarks(study(), t)],
    };
}

/* What the chart says, for the reader who sees a table only, and for print. */
function frontTable() {
    const s = study();
    const { rows, knee } = paretoFront(s);
    const head = ['Trial', data.results[pareto.x].title, data.results[pareto.y].title,
        'What changes from the row above'];
    const lines = rows.map((row, i) => [
        el('button', { type: 'button', class: 'link',
            onclick: () => choose({ selected: { study: s.index, row } }) }, String(s.trial[row])),
        quantity(s.results[pareto.x][row], data.results[pareto.x].unit),
        quantity(s.results[pareto.y][row], data.results[pareto.y].unit),
        `${row === knee ? 'Knee. ' : ''}${i > 0 ? difference(s, rows[i - 1], row) : ''}`,
    ]);
    return el('details', { open: !hasCharts, id: 'front-table' },
        el('summary', {}, `Front of ${study().name}: ${plural(rows.length, 'design')}`),
        rows.length ? simpleTable(head, lines) : el('p', { class: 'note' }, 'No design is on it.'));
}

/* Knobs of which two rows have different values. */
function difference(s, from, to) {
    const words = [];
    for (const [stem, knobs] of knobGroups(s)) {
        const texts = [from, to].map((row) => knobs.map((k) => s.knobText(row, k)).join(','));
        if (texts[0] !== texts[1]) words.push(`${shortKnob(stem)} ${texts[0]} → ${texts[1]}`);
    }
    return words.join('; ') || 'nothing';
}

/* A front the user asked for over criteria that are no axes here. */
function askedFront(s) {
    const { front } = s.about;
    const known = front.criteria.length === 2
        && front.criteria.every(({ name }) => name in CRITERION_KEYS);
    if (known) return null;
    return el('details', { open: true },
        el('summary', {}, `Front of ${front.criteria.map(({ name }) => name).join(', ')}: ${
            plural(front.rows.length, 'design')}`),
        simpleTable(['Trial', ...front.criteria.map(({ name }) => name)],
            front.rows.map((row, i) => [String(s.trial[row]),
                ...front.values[i].map((v, c) => quantity(v, front.criteria[c].unit))])));
}

/* Every design of the chart. */
function paretoData() {
    return data.all.flatMap((s) => {
        const front = new Set(paretoFront(s).rows);
        return Array.from({ length: s.n }, (_, row) => [s.name, s.trial[row], s.statusText(row), front.has(row),
            s.results[pareto.x][row], s.results[pareto.y][row]]);
    });
}

function startAxes() {
    const { criteria } = study().about.front;
    const keys = criteria.map(({ name }) => CRITERION_KEYS[name]);
    const metrics = paretoMetrics();
    if (keys.length === 2 && keys.every((key) => metrics.includes(key))) [pareto.x, pareto.y] = keys;
    else [pareto.x, pareto.y] = [metrics[0] || 'latency_s', metrics[1] || 'peak_memory_bytes'];
}

function renderPareto(root) {
    if (data.all.every((s) => s.status.every((status) => status > INFEASIBLE))) {
        root.replaceChildren(el('p', { class: 'note' }, 'There is no design with a result to draw.'));
        return;
    }
    const box = chartBox('Two metrics of every design against each other', narrow() ? 380 : 480);
    const table = el('div');
    const metrics = paretoMetrics().map((key) => [key, data.results[key].title]);
    const draw = () => {
        redraw('pareto');
        table.replaceChildren(frontTable(), askedFront(study()) || '');
    };
    const set = (change) => {
        Object.assign(pareto, change);
        draw();
    };
    root.replaceChildren(
        el('p', { class: 'lede' }, 'Each point is a design. The line joins those that no other beats '
            + 'in both metrics; of equal designs the first trial stands for all. The ring is the knee: '
            + 'nearest to the best of both. Designs that do not fit are not simulated: their crosses stand at the '
            + 'edge. Hover to read a design, click to keep it.'),
        el('div', { class: 'controls' },
            select('Across', metrics, pareto.x, (x) => set({ x })),
            select('Up', metrics, pareto.y, (y) => set({ y })),
            checkbox('log across', pareto.logX, (logX) => set({ logX })),
            checkbox('log up', pareto.logY, (logY) => set({ logY })),
            checkbox('infeasible', pareto.infeasible, (infeasible) => set({ infeasible })),
            checkbox('near the front', pareto.near, (near) => set({ near })),
            dataButtons('trade-off', () => ['study', 'trial', 'status', 'on_front', pareto.x, pareto.y], paretoData)),
        hasCharts ? box : '', table);
    table.replaceChildren(frontTable(), askedFront(study()) || '');
    if (!hasCharts) return;
    plot('pareto', box, paretoOption, (chart) => chart.on('click', (at) => {
        if (!at.value || at.value.length !== 3) return;
        const index = Number.parseInt(at.seriesId, 10);
        choose({ selected: { study: index, row: at.value[2] } });
    }));
}

follow((change) => {
    if ('selected' in change) redraw('pareto');
});
