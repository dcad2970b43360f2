// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parallel coordinates: a line is a design, an axis a knob or a metric.  Marking ranges on axes
// filters the table of trials; the filter looks at all trials, also those without a line.

const MOST_LINES = 1200;
const parallel = { axes: null, rows: [] };

/* Everything that can be an axis: knobs, then metrics, then objectives. */
function allAxes(s) {
    const knobs = s.about.knobs.map((knob, k) => ({
        key: `knob ${k}`, title: shortKnob(knob.name), values: knob.values, knob: k,
        of: (row) => (s.knobs[k][row] < knob.values.length ? s.knobs[k][row] : NaN),
    })).filter(({ values }) => values.length > 1);
    const metrics = [...data.metrics, 'mfu'].filter((key) => s.has(key)).map((key) => ({
        key, title: data.results[key].title, unit: key === 'mfu' ? '%' : data.results[key].unit,
        of: (row) => s.results[key][row],
    }));
    const objectives = s.about.objectives.map((o, i) => ({
        key: `objective ${i}`, title: o.name, unit: '', of: (row) => s.objectives[i][row],
    })).filter((_, i) => !s.about.objectives[i].is);
    return [...knobs, ...metrics, ...objectives];
}

/* The knobs that matter most, then the metrics. */
function defaultAxes(s) {
    const axes = allAxes(s);
    const weight = new Map((s.about.importance?.knobs || []).map((k) => [k.knob, k.importance]));
    const knobs = axes.filter(({ knob }) => knob !== undefined)
        .sort((a, b) => (weight.get(b.knob) || 0) - (weight.get(a.knob) || 0) || a.knob - b.knob)
        .slice(0, narrow() ? 4 : 7).sort((a, b) => a.knob - b.knob);
    const rest = axes.filter(({ knob, key }) => knob === undefined && key !== 'energy_j');
    return new Set([...knobs, ...rest.slice(0, narrow() ? 3 : 5)].map(({ key }) => key));
}

function shownAxes() {
    return allAxes(study()).filter(({ key }) => parallel.axes.has(key));
}

/* The best, the front, and an even choice of the others. */
function chooseLines(s) {
    const rows = new Set([...s.about.top, ...s.about.front.rows.slice(0, 200)]);
    for (const row of evenly(s.n, MOST_LINES - rows.size)) {
        if (s.status[row] <= INFEASIBLE) rows.add(row);
    }
    parallel.rows = [...rows];
}

/* 0 for the best feasible row, 1 for the worst. */
function rankShares(s) {
    const order = parallel.rows.filter((row) => s.feasible(row))
        .sort((a, b) => (s.objectives[0][a] - s.objectives[0][b]) * (s.maximize ? -1 : 1));
    return new Map(order.map((row, i) => [row, i / Math.max(1, order.length - 1)]));
}

function lineStyle(s, row, shares, t) {
    if (!s.feasible(row)) return { color: t.bad, opacity: 0.1, width: 1, type: 'dashed' };
    if (row === s.best) return { color: t.series[1], opacity: 1, width: 3.5 };
    const share = shares.get(row);
    const level = share < 0.02 ? 0 : share < 0.15 ? 1 : share < 0.5 ? 2 : 3;
    return { color: t.ramp[level], opacity: [0.85, 0.5, 0.3, 0.2][level], width: level ? 1 : 1.6 };
}

function parallelAxis(s, axis, dim, t) {
    const common = {
        dim, name: axis.title,
        nameTextStyle: { color: t.ink, fontSize: 11, width: 76, overflow: 'truncate' },
        axisLine: { lineStyle: { color: t.dim } },
        axisLabel: { color: t.dim, fontSize: 10.5 },
        areaSelectStyle: { width: 18, color: t.series[0], opacity: 0.35 },
    };
    if (axis.values) {
        return { ...common, type: 'category', data: axis.values,
            axisLabel: { ...common.axisLabel, interval: axis.values.length > (narrow() ? 7 : 14) ? 'auto' : 0 } };
    }
    const range = span(parallel.rows.map(axis.of));
    const value = valueAxis(axis.title, axis.unit, range, true);
    return { ...common, type: value.type, logBase: value.logBase, min: value.min, max: value.max,
        scale: true, axisTick: value.axisTick,
        axisLabel: { ...value.axisLabel, ...common.axisLabel } };
}

function parallelOption() {
    const s = study();
    const t = theme();
    const axes = shownAxes();
    const shares = rankShares(s);
    /* The best are drawn last, on top. */
    const order = [...parallel.rows].sort((a, b) => (shares.get(b) ?? 2) - (shares.get(a) ?? 2));
    const upright = narrow();
    return {
        ...baseOption(),
        tooltip: { ...baseOption().tooltip, formatter: ({ data: item }) => designTip(s, item.row) },
        parallel: {
            layout: upright ? 'vertical' : 'horizontal', left: upright ? 16 : 40,
            right: upright ? 84 : 60, top: upright ? 30 : 44, bottom: 24,
            parallelAxisDefault: { nameLocation: 'end', nameGap: 14,
                nameTextStyle: { width: 76, overflow: 'truncate' } },
        },
        parallelAxis: axes.map((axis, dim) => parallelAxis(s, axis, dim, t)),
        series: [{
            type: 'parallel', smooth: false, data: order.map((row) => ({
                row, value: axes.map((axis) => {
                    const value = axis.of(row);
                    return Number.isFinite(value) ? value : '-';
                }), lineStyle: lineStyle(s, row, shares, t),
            })),
            inactiveOpacity: 0.02, emphasis: { lineStyle: { width: 3, opacity: 1 } },
        }],
    };
}

/* The ranges marked on the axes, as a test of a row; null when nothing is marked. */
function brushTest(chart) {
    const tests = [];
    shownAxes().forEach((axis, dim) => {
        const model = chart.getModel().getComponent('parallelAxis', dim);
        const intervals = model ? model.activeIntervals : [];
        if (!intervals.length) return;
        tests.push((row) => {
            const value = axis.of(row);
            return intervals.some(([low, high]) => {
                const from = Math.min(low, high);
                const to = Math.max(low, high);
                return axis.values ? value >= Math.round(from) && value <= Math.round(to)
                    : value >= from && value <= to;
            });
        });
    });
    return tests.length ? (row) => tests.every((test) => test(row)) : null;
}

function axisPicker(redrawn) {
    const axes = allAxes(study());
    return el('details', { class: 'axes' }, el('summary', {}, 'Axes'),
        el('div', { class: 'controls' }, axes.map((axis) =>
            checkbox(axis.title, parallel.axes.has(axis.key), (on) => {
                if (on) parallel.axes.add(axis.key);
                else parallel.axes.delete(axis.key);
                redrawn();
            }))));
}

function renderParallel(root) {
    const s = study();
    parallel.axes = defaultAxes(s);
    chooseLines(s);
    choose({ filter: null });
    if (!hasCharts || parallel.rows.length === 0) {
        root.replaceChildren(el('p', { class: 'note' }, hasCharts
            ? 'There is no design with a result to draw.' : 'Without charts, use the table below.'));
        return;
    }
    const box = chartBox('Parallel coordinates of designs', narrow() ? 640 : 430);
    const clear = el('button', { type: 'button', class: 'quiet', onclick: () => {
        redraw('parallel');
        choose({ filter: null });
    } }, 'Clear the marks');
    root.replaceChildren(
        el('p', { class: 'lede' }, `Each line is a design, darker when better; the best is thick. Drag along `
            + `an axis to mark a range: the table below keeps the designs that pass all marks.${
                parallel.rows.length < s.n ? ` ${parallel.rows.length.toLocaleString('en-US')} of ${
                    s.n.toLocaleString('en-US')} designs have a line: the best, the front and an `
                    + 'even choice of the others. Marks apply to all.' : ''}`),
        el('div', { class: 'controls' }, clear, dataButtons('lines', () => ['trial', ...shownAxes().map(({ title }) => title)],
            () => parallel.rows.map((row) => [s.trial[row], ...shownAxes().map((axis) => (axis.values
                ? s.knobText(row, axis.knob) : axis.of(row)))])), axisPicker(() => {
            redraw('parallel');
            choose({ filter: null });
        })),
        box);
    plot('parallel', box, parallelOption, (chart) => {
        chart.on('axisareaselected', () => choose({ filter: brushTest(chart) }));
        chart.on('click', (at) => at.data && choose({ selected: { study: s.index, row: at.data.row } }));
    });
}
