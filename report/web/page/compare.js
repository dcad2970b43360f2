// SPDX-License-Identifier: GPL-3.0-or-later
//
// Agents against each other: convergence, runs to target, performance profiles, ranks.

const compare = { problem: 0, target: 0.01 };
const FLOOR = 1e-4; /* regrets below are drawn here */

function comparedAgents() {
    return [...new Set(data.compare.about.rows.map(({ agent }) => agent))];
}

/* Runs of an agent on a problem, as regrets at the evaluations where they fell. */
function regretRuns(problem, agent) {
    const { label, optimum } = data.compare.about.problems[problem];
    return data.compare.runs.filter((run) => run.problem === label && run.agent === agent
        && Array.isArray(run.trace)).map((run) => ({ seed: run.seed, evaluations: run.evaluations,
        at: run.trace.map(([n]) => n), regret: run.trace.map(([, v]) => Math.abs(v / optimum - 1)) }));
}

/* Regret of a run after n evaluations; infinite before its first feasible design. */
function regretAfter(run, n) {
    let low = 0;
    let high = run.at.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (run.at[middle] <= n) low = middle + 1;
        else high = middle;
    }
    return low === 0 ? Infinity : run.regret[low - 1];
}

function quantileOf(sorted, q) {
    const at = q * (sorted.length - 1);
    const low = sorted[Math.floor(at)];
    const high = sorted[Math.ceil(at)];
    return low === high || !Number.isFinite(high) ? high : low + (high - low) * (at - Math.floor(at));
}

/* Whole numbers from 1 to `most`, evenly apart in the logarithm. */
function logSteps(most) {
    const steps = new Set();
    for (let i = 0; i <= 120; i++) steps.add(Math.round(most ** (i / 120)));
    return [...steps];
}

/* First evaluation with a regret of at most `target`; infinite when never. */
function evaluationsTo(run, target) {
    const at = run.regret.findIndex((r) => r <= target);
    return at < 0 ? Infinity : run.at[at];
}

function agentColour(agent) {
    const t = theme();
    return t.series[comparedAgents().indexOf(agent) % t.series.length];
}

const DASHES = ['solid', 'dashed', 'dotted'];

/* Colours repeat after six agents: then the dashes differ. */
function agentLine(agent) {
    const at = comparedAgents().indexOf(agent);
    return { color: agentColour(agent), width: 2.2, type: DASHES[Math.floor(at / 6) % DASHES.length] };
}

function stepSeries(name, points, agent) {
    return { name, type: 'line', step: 'end', showSymbol: false, data: points, lineStyle: agentLine(agent),
        itemStyle: { color: agentColour(agent) }, emphasis: { focus: 'series' } };
}

/* The area between two step lines, as one polygon. */
function bandSeries(agent, points) {
    const draw = (params, api) => {
        if (params.dataIndex > 0 || points.length < 2) return null;
        const upper = [];
        const lower = [];
        points.forEach(([n, low, high], i) => {
            const next = points[Math.min(i + 1, points.length - 1)][0];
            upper.push(api.coord([n, high]), api.coord([next, high]));
            lower.unshift(api.coord([next, low]), api.coord([n, low]));
        });
        return { type: 'polygon', shape: { points: [...upper, ...lower] }, silent: true,
            style: { fill: agentColour(agent), opacity: 0.13 } };
    };
    return { type: 'custom', name: agent, id: `band ${agent}`, renderItem: draw, data: points, silent: true, z: 1,
        clip: true, encode: { x: 0, y: [1, 2] }, tooltip: { show: false } };
}

function compareOption(xAxis, yAxis, series, tip) {
    const t = theme();
    return {
        ...baseOption(),
        tooltip: { ...baseOption().tooltip, trigger: 'axis', formatter: tip },
        legend: { type: 'scroll', top: 0, data: comparedAgents(), textStyle: { color: t.dim },
            pageTextStyle: { color: t.dim }, itemHeight: 8 },
        grid: { left: 26, right: 22, top: 40, bottom: 34, containLabel: true },
        xAxis: { ...xAxis, nameGap: 26 }, yAxis: { ...yAxis, nameGap: narrow() ? 44 : 52 }, series,
    };
}

function axisTip(text) {
    return (points) => el('div', { class: 'tip' }, el('b', {}, text(points[0].axisValue)),
        points.filter(({ seriesType }) => seriesType === 'line').map((p) =>
            el('div', { class: 'tipline' }, el('span', {}, p.seriesName), el('b', {}, p.value[2] || percent(p.value[1])))));
}

/* ---- convergence ---- */

function convergence(agent, most) {
    const runs = regretRuns(compare.problem, agent);
    if (!runs.length) return null;
    const points = [];
    for (const n of logSteps(most)) {
        const sorted = runs.map((run) => regretAfter(run, n)).sort((a, b) => a - b);
        const [low, middle, high] = [0.25, 0.5, 0.75].map((q) => quantileOf(sorted, q));
        if (Number.isFinite(high)) points.push({ n, low, middle, high });
    }
    return points;
}

/* Infinite values are absent in files. */
function finite(value) {
    return Number.isFinite(value) ? value : null;
}

function mostEvaluations() {
    return Math.max(...data.compare.runs.filter(({ agent }) => comparedAgents().includes(agent))
        .map(({ evaluations }) => evaluations), 10);
}

function convergenceOption() {
    const t = theme();
    const most = mostEvaluations();
    /* From 0 at the floor upwards, so that bands can be stacked. */
    const log = (v) => Math.log10(Math.max(v, FLOOR) / FLOOR);
    const series = comparedAgents().flatMap((agent) => {
        const points = convergence(agent, most);
        if (!points) return [];
        return [
            bandSeries(agent, points.map(({ n, low, high }) => [n, log(low), log(high)])),
            stepSeries(agent, points.map(({ n, middle }) => [n, log(middle), percent(middle)]), agent),
        ];
    });
    const tops = series.filter(({ type }) => type === 'line').flatMap((s) => s.data.map(([, v]) => v));
    const y = { ...valueAxis('median regret', '', null, false), scale: false, min: 0,
        max: Math.ceil(Math.max(3, ...tops)),
        axisLabel: { color: t.dim, formatter: (v) => (v <= 0 ? '≤ 0.01 %' : percent(FLOOR * 10 ** v)) }, interval: 1 };
    return compareOption(valueAxis('evaluations', '', [1, most], true), y, series,
        axisTip((n) => `after ${plain(n)} evaluations`));
}

/* ---- runs to target ---- */

function ecdfOption() {
    const all = comparedAgents();
    const runs = new Map(all.map((agent) => [agent, data.compare.about.problems.flatMap((_, p) => regretRuns(p, agent))]));
    const most = Math.max(10, ...[...runs.values()].flat().map(({ evaluations }) => evaluations));
    const series = all.map((agent) => {
        const list = runs.get(agent);
        const reached = list.map((run) => evaluationsTo(run, compare.target)).filter(Number.isFinite).sort((a, b) => a - b);
        const points = [[1, 0], ...reached.map((n, i) => [n, (i + 1) / list.length])];
        points.push([most, reached.length / Math.max(1, list.length)]);
        return stepSeries(agent, points, agent);
    });
    return compareOption(valueAxis('evaluations', '', [1, most], true),
        { ...valueAxis('share of runs', '%', null, false), min: 0, max: 1 }, series,
        axisTip((n) => `within ${plain(n)} evaluations`));
}

/* ---- performance profiles ---- */

/* For every instance (problem, seed): evaluations of each agent over the fewest of any. */
function profileRatios() {
    const ratios = new Map(comparedAgents().map((agent) => [agent, []]));
    data.compare.about.problems.forEach((_, p) => {
        const by = new Map(comparedAgents().map((agent) => [agent,
            new Map(regretRuns(p, agent).map((run) => [run.seed, evaluationsTo(run, compare.target)]))]));
        const seeds = new Set([...by.values()].flatMap((m) => [...m.keys()]));
        for (const seed of seeds) {
            const fewest = Math.min(...[...by.values()].map((m) => m.get(seed) ?? Infinity));
            for (const [agent, m] of by) {
                const own = m.get(seed) ?? Infinity;
                ratios.get(agent).push(Number.isFinite(own) ? own / fewest : Infinity);
            }
        }
    });
    return ratios;
}

function profileOption() {
    const ratios = profileRatios();
    const finite = [...ratios.values()].flat().filter(Number.isFinite);
    const most = Math.max(10, ...finite);
    const series = [...ratios].map(([agent, list]) => {
        const reached = list.filter(Number.isFinite).sort((a, b) => a - b);
        const points = [[1, reached.filter((r) => r <= 1).length / Math.max(1, list.length)],
            ...reached.map((r, i) => [r, (i + 1) / list.length]), [most, reached.length / Math.max(1, list.length)]];
        return stepSeries(agent, points, agent);
    });
    return compareOption(valueAxis('evaluations over the fewest of any agent', '', [1, most], true),
        { ...valueAxis('share of runs', '%', null, false), min: 0, max: 1 }, series,
        axisTip((r) => `within ${plain(r, 3)} × the fewest`));
}

/* ---- ranks ---- */

function meanRanks() {
    return comparedAgents().map((agent) => {
        const rows = data.compare.about.rows.filter((row) => row.agent === agent && typeof row.rank === 'number');
        return { agent, rank: rows.reduce((sum, { rank }) => sum + rank, 0) / Math.max(1, rows.length),
            best: rows.filter(({ verdict }) => verdict === 'best').length,
            tied: rows.filter(({ verdict }) => verdict === 'tied').length, n: rows.length };
    }).sort((a, b) => a.rank - b.rank);
}

function ranksView() {
    const ranks = meanRanks();
    const most = comparedAgents().length;
    return el('div', {}, ranks.map(({ agent, rank, best, tied, n }) => barRow(agent, rank / most,
        `${plain(rank, 3)}; best on ${best}, tied on ${tied} of ${n}`)));
}

function compareTable() {
    const { rows } = data.compare.about;
    const evaluations = (v) => (typeof v === 'number' ? plain(v, 4) : 'never');
    const head = ['Agent', 'Regret at the end', '95 % interval', 'Reach 1 %', 'ERT 1 %', 'Reach 5 %', 'ERT 5 %', 'Anytime',
        'Rank', 'p', 'A12', 'Verdict'];
    return simpleTable(head, rows.filter(({ problem }) => problem === compare.problem).map((r) => [r.agent,
        percent(r.final ?? NaN), r.ci.every((v) => typeof v === 'number') ? `${percent(r.ci[0])} to ${percent(r.ci[1])}` : '–',
        percent(r.success_1), evaluations(r.ert_1), percent(r.success_5), evaluations(r.ert_5), plain(r.area, 3),
        plain(r.rank, 3), plain(r.p ?? NaN, 2), plain(r.a12 ?? NaN, 2), r.verdict]));
}

/* ---- the page ---- */

function compareSections() {
    const { problems } = data.compare.about;
    const options = problems.map(({ label }, i) => [String(i), label]);
    const targets = [['0.01', '1 %'], ['0.05', '5 %'], ['0.001', '0.1 %']];
    const boxes = Object.fromEntries(['convergence', 'ecdf', 'profile'].map((name) => [name, chartBox(name, 400)]));
    const table = el('div', {}, compareTable());
    const about = el('p', { class: 'lede' });
    const describe = () => {
        const p = problems[compare.problem];
        about.textContent = `${count(p.valid_points)} valid designs; optimum ${plain(p.optimum, 6)} (${
            p.kind.replaceAll('_', ' ')}). Lines are medians over seeds, bands the middle half. Regret is how much worse than `
            + 'the optimum the best design found so far is.';
    };
    describe();
    const target = () => select('Target', targets, String(compare.target), (value) => {
        compare.target = Number(value);
        redraw('ecdf');
        redraw('profile');
    });
    const none = hasCharts ? '' : el('p', { class: 'note' }, `No charts: ${data.head.missing}.`);
    return {
        boxes,
        list: [
            ['convergence', 'Convergence', [el('div', { class: 'controls' }, select('Problem', options, '0', (value) => {
                compare.problem = Number(value);
                describe();
                redraw('convergence');
                table.replaceChildren(compareTable());
            })), about, hasCharts ? boxes.convergence : none,
                dataButtons('convergence', () => ['agent', 'evaluations', 'regret_25', 'regret_median', 'regret_75'], () =>
                    comparedAgents().flatMap((agent) => (convergence(agent, mostEvaluations()) || [])
                        .map((p) => [agent, p.n, p.low, p.middle, p.high]))), table]],
            ['ranks', 'Ranks', [el('p', { class: 'lede' }, 'Mean rank by regret at the end, over problems and seeds; 1 is '
                + 'best. Tied: not told apart from the best at 5 % (Wilcoxon signed rank, Holm).'), ranksView()]],
            ['runs', 'Runs to target', [el('div', { class: 'controls' }, target()),
                el('p', { class: 'lede' }, 'Share of the runs on all problems that are within the target of the optimum, '
                    + 'by evaluations.'), hasCharts ? boxes.ecdf : none,
                dataButtons('runs to target', () => ['agent', 'problem', 'seed', 'evaluations'], () =>
                    comparedAgents().flatMap((agent) => problems.flatMap((p, i) => regretRuns(i, agent).map((run) =>
                        [agent, p.label, run.seed, finite(evaluationsTo(run, compare.target))]))))]],
            ['profiles', 'Performance profiles', [el('p', { class: 'lede' }, 'Share of the runs that need at most so many '
                + 'times the evaluations of the fastest agent on the same problem and seed (Dolan and Moré, 2002), for '
                + 'the target chosen above.'), hasCharts ? boxes.profile : none,
                dataButtons('profiles', () => ['agent', 'ratio'], () => [...profileRatios()].flatMap(([agent, list]) =>
                    list.map((ratio) => [agent, finite(ratio)])))]],
        ],
    };
}

function buildCompare() {
    const main = document.getElementById('main');
    const { name, problems } = data.compare.about;
    const { boxes, list } = compareSections();
    const ranks = meanRanks();
    main.replaceChildren(el('section', { class: 'head' },
        el('p', { class: 'eyebrow' }, `Comparison of ${plural(ranks.length, 'agent')} on ${plural(problems.length, 'problem')}, ${
            plural(data.compare.runs.length, 'run')}`), el('h1', {}, name),
        el('p', { class: 'headline' }, `${ranks[0] ? ranks[0].agent : '–'} has the best mean rank${
            ranks[0] ? ` (${plain(ranks[0].rank, 3)})` : ''}.`)));
    for (const [id, title, content] of list) {
        main.append(el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title),
            el('div', { class: 'body' }, content)));
    }
    document.getElementById('nav').replaceChildren(...list.map(([id, title]) => el('a', { href: `#${id}` }, title)));
    plot('convergence', boxes.convergence, convergenceOption);
    plot('ecdf', boxes.ecdf, ecdfOption);
    plot('profile', boxes.profile, profileOption);
}
