// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which knobs matter, and what each of their values does.

function importanceOption() {
    const { knobs } = study().about.importance;
    const t = theme();
    const list = [...knobs].sort((a, b) => a.importance - b.importance).slice(-12);
    const names = list.map(({ knob }) => shortKnob(study().about.knobs[knob].name));
    return {
        ...baseOption(),
        tooltip: { ...baseOption().tooltip, formatter: ({ name, value }) => el('div', { class: 'tip' },
            el('b', {}, name), el('div', {}, `${percent(value)} of the variance is lost without it`)) },
        grid: { left: 8, right: 56, top: 6, bottom: 26, containLabel: true },
        xAxis: { ...valueAxis('', '', null, false), min: 0,
            axisLabel: { color: t.dim, formatter: (v) => percent(v) } },
        yAxis: { type: 'category', data: names, axisLabel: { color: t.ink },
            axisTick: { show: false }, axisLine: { lineStyle: { color: t.line } } },
        series: [{ type: 'bar', data: list.map(({ importance }) => importance), barMaxWidth: 16,
            itemStyle: { color: t.series[0], borderRadius: [0, 3, 3, 0] },
            label: { show: true, position: 'right', color: t.ink, formatter: ({ value }) => percent(value) } }],
    };
}

/* One knob's values across, the objective up: a line of the model's mean, a dot at the best seen. */
function drawEffect(s, effect) {
    const knob = s.about.knobs[effect.knob];
    const values = effect.values.filter(({ predicted }) => Number.isFinite(predicted));
    const range = span(values.flatMap(({ predicted, best }) => [predicted, best ?? NaN]));
    const [width, height, side] = [210, 96, 8];
    if (!range) return null;
    const log = range[0] > 0;
    const share = (v) => (range[1] > range[0] ? (log ? Math.log(v / range[0]) / Math.log(range[1] / range[0])
        : (v - range[0]) / (range[1] - range[0])) : 0.5);
    const x = (i) => side + ((width - 2 * side) * (i + 0.5)) / values.length;
    const y = (v) => height - 8 - (height - 16) * share(v);
    const drawing = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'effect', role: 'img',
        'aria-label': `${knob.name}: ${values.map(({ value, predicted }) => `${knob.values[value]} ${
            plain(predicted, 3)}`).join(', ')}` });
    drawing.append(svg('polyline', { class: 'mean', points: values.map(({ predicted }, i) =>
        `${x(i).toFixed(1)},${y(predicted).toFixed(1)}`).join(' ') }));
    values.forEach(({ value, predicted, best, trials: n }, i) => {
        const title = `${knob.values[value]}: mean ${plain(predicted, 4)}, best ${plain(best ?? NaN, 4)} in ${
            plural(n, 'trial')}`;
        drawing.append(svg('rect', { x: x(i) - 3, y: y(predicted) - 3, width: 6, height: 6, class: 'at' },
            svg('title', {}, title)));
        if (Number.isFinite(best)) {
            drawing.append(svg('circle', { cx: x(i), cy: y(best), r: 4, class: 'seen' },
                svg('title', {}, title)));
        }
    });
    const step = Math.ceil(values.length / 6);
    return el('figure', { class: 'small' }, el('figcaption', {}, shortKnob(knob.name)), drawing,
        el('div', { class: 'ticks' }, values.map(({ value }, i) => el('span', { title: knob.values[value],
            style: { left: `${(100 * x(i)) / width}%` } }, i % step === 0 ? shortValue(knob.values[value]) : ''))));
}

function shortValue(text) {
    return text.length > 9 ? `${text.slice(0, 8)}…` : text;
}

function importanceWords(importance, objective) {
    return `${importance.method} ${objective.name} in ${plural(importance.trials, 'feasible trial')}. `
        + `The model explains ${percent(Math.max(0, importance.r2))} of the variance of trials it was not `
        + `fitted to${importance.r2 < 0.5 ? ': read the bars with care' : ''}.`;
}

function renderImportance(root) {
    const s = study();
    const { importance } = s.about;
    if (!importance || !importance.knobs) {
        root.replaceChildren(el('p', { class: 'note' }, (importance && importance.why)
            || 'There are too few feasible trials to tell.'));
        return;
    }
    const box = chartBox('Importance of knobs', 26 * Math.min(12, importance.knobs.length) + 44);
    const top = [...importance.knobs].sort((a, b) => b.importance - a.importance);
    root.replaceChildren(
        el('p', { class: 'lede' }, importanceWords(importance, s.about.objectives[0])),
        hasCharts ? box : '',
        dataButtons('importance', () => ['knob', 'importance', 'value', 'predicted', 'best', 'trials'], () => top.flatMap((k) =>
            k.values.map((v) => [s.about.knobs[k.knob].name, k.importance, s.about.knobs[k.knob].values[v.value],
                v.predicted, v.best, v.trials]))),
        el('details', { open: !hasCharts }, el('summary', {}, 'Importance as a table'),
            simpleTable(['Knob', 'Variance lost without it'], top.map((k) =>
                [s.about.knobs[k.knob].name, percent(k.importance)]))),
        el('h3', {}, 'Main effects'),
        el('p', { class: 'lede' }, `Squares: ${s.about.objectives[0].name} that the model expects for a value, `
            + 'the other knobs as they were in the trials. Circles: the best trial that has it.'),
        el('div', { class: 'smalls' }, top.filter(({ values }) => values.length > 1).slice(0, 8)
            .map((k) => drawEffect(s, k))));
    plot('importance', box, importanceOption);
}
