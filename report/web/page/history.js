// SPDX-License-Identifier: GPL-3.0-or-later
//
// How the objective fell with the trials, of all studies, with bound and baseline.

const MOST_POINTS = 4000;

/* Every k-th of n, so that at most `most` are left. */
function* evenly(n, most) {
    const step = Math.max(1, n / most);
    for (let at = 0; at < n; at += step) yield Math.floor(at);
}

function historySeries(s, colour) {
    const values = s.objectives[0];
    const steps = s.about.improvements.map((row) => [s.trial[row], values[row]]);
    if (steps.length) steps.push([s.trial[s.n - 1], steps[steps.length - 1][1]]);
    const cloud = [];
    for (const row of evenly(s.n, MOST_POINTS)) {
        if (s.feasible(row)) cloud.push([s.trial[row], values[row], row]);
    }
    return [
        { name: `${s.prefix}each trial`, type: 'scatter', data: cloud, symbolSize: 3, silent: true,
            large: true, itemStyle: { color: colour, opacity: 0.25 }, tooltip: { show: false },
            z: 1 },
        { name: `${s.prefix}best so far`, type: 'line', data: steps, step: 'end', symbolSize: 6,
            symbol: 'circle', showSymbol: steps.length < 60, z: 3,
            lineStyle: { color: colour, width: 2.5 }, itemStyle: { color: colour },
            tooltip: { formatter: (at) => historyTip(s, at) } },
    ];
}

function historyTip(s, { dataIndex }) {
    const row = s.about.improvements[Math.min(dataIndex, s.about.improvements.length - 1)];
    return designTip(s, row);
}

/* Horizontal lines at the baseline and at the proven bound of the study read now. */
function historyMarks(s) {
    const t = theme();
    const lines = [];
    const mark = (value, text, type) => Number.isFinite(value) && lines.push({ yAxis: value,
        name: text, lineStyle: { type, color: t.ink, width: 1.5 },
        label: { formatter: `${text} ${objectiveText(s.about.objectives[0], value, 4)}`, position: 'insideEndTop', color: t.ink } });
    mark(baselineObjective(s), 'baseline', 'dotted');
    mark(s.about.bound ?? NaN, 'proven bound', 'dashed');
    return { type: 'line', data: [], markLine: { symbol: 'none', silent: true, data: lines } };
}

function historyOption() {
    const { name } = study().about.objectives[0];
    const same = data.all.filter((s) => s.about.objectives[0].name === name);
    const t = theme();
    const values = same.flatMap((s) => [
        ...s.about.improvements.map((row) => s.objectives[0][row]), baselineObjective(s),
        s.about.bound ?? NaN, ...[...evenly(s.n, 500)].filter((row) => s.feasible(row))
            .map((row) => s.objectives[0][row])]);
    return {
        ...baseOption(),
        legend: { show: !narrow(), top: 0, right: 8, textStyle: { color: t.dim }, itemHeight: 8 },
        grid: { left: 12, right: 18, top: narrow() ? 12 : 34, bottom: 30, containLabel: true },
        xAxis: { ...valueAxis('trial', '', null, false), min: 1, nameGap: 26,
            max: Math.max(2, ...same.map((s) => s.about.counts.trials)) },
        yAxis: { ...valueAxis('', study().about.objectives[0].unit || '', span(values), true) },
        series: [...same.flatMap((s) => historySeries(s, t.series[s.index % t.series.length])),
            historyMarks(study())],
    };
}

function historyWords(s) {
    const { improvements, objectives, counts } = s.about;
    if (!improvements.length) {
        return counts.trials ? 'No trial was feasible, so the objective never had a value.' : 'There is no trial.';
    }
    const last = improvements[improvements.length - 1];
    return `${objectives[0].name} (${objectives[0].is ? '' : `${objectives[0].text}, `}${s.maximize ? 'greater' : 'less'} is `
        + `better) improved ${plural(improvements.length, 'time')} in ${
            plural(counts.trials, 'trial')}, the last time at trial ${s.trial[last]}. ${
            typeof s.about.bound === 'number'
                ? `No design of this space can be better than ${objectiveText(objectives[0], s.about.bound, 5)} (proven).`
                : 'No bound is recorded with this study.'}`;
}

function renderHistory(root) {
    const s = study();
    const box = chartBox('Objective against trials', 320);
    const rows = s.about.improvements;
    if (data.all.every((one) => one.about.improvements.length === 0)) {
        root.replaceChildren(el('p', { class: 'note' }, historyWords(s)));
        return;
    }
    const others = data.all.filter((one) => one.about.objectives[0].name !== s.about.objectives[0].name);
    root.replaceChildren(el('p', { class: 'lede' }, historyWords(s), others.length > 0
        && ` Not drawn, with other objectives: ${others.map(({ name }) => name).join(', ')}.`), hasCharts ? box : '',
        dataButtons(`${s.about.name} history`, () => ['study', 'trial', s.about.objectives[0].name], () => data.all
            .filter((one) => !others.includes(one)).flatMap((one) => one.about.improvements.map((row) =>
                [one.name, one.trial[row], one.objectives[0][row]]))),
        rows.length > 0 && el('details', { open: !hasCharts }, el('summary', {}, 'Improvements as a table'),
            simpleTable(['Trial', s.about.objectives[0].name],
                rows.map((row) => [s.trial[row], objectiveText(s.about.objectives[0], s.objectives[0][row], 8)]))) || '');
    plot('history', box, historyOption);
}

function simpleTable(header, rows) {
    return el('div', { class: 'scroll', tabindex: 0 }, el('table', {},
        el('thead', {}, el('tr', {}, header.map((text) => el('th', { scope: 'col' }, text)))),
        el('tbody', {}, rows.map((row) => el('tr', {}, row.map((cell) => el('td', {}, cell)))))));
}
