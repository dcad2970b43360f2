// SPDX-License-Identifier: GPL-3.0-or-later
//
// The report page in a real browser: node report_page.js NODE_MODULES BROWSER DIR, where DIR holds
// normal.html with its trials.json and front.json, and further pages whose names say what they are.
'use strict';

const { readFileSync, readdirSync } = require('node:fs');
const path = require('node:path');

const [, , modules, executablePath, dir] = process.argv;
const { chromium } = require(path.join(modules, 'playwright-core'));

let checks = 0;
let failures = 0;

function check(ok, what) {
    checks++;
    if (ok) return;
    failures++;
    console.log(`FAIL: ${what}`);
}

/* Opens a page and counts what it must not do. */
async function open(browser, name, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    page.on('console', (m) => m.type() === 'error' && check(false, `${name}: console: ${m.text()}`));
    page.on('pageerror', (e) => check(false, `${name}: ${e.message}`));
    page.on('dialog', (d) => {
        check(false, `${name}: a script of the data ran: ${d.message()}`);
        d.dismiss();
    });
    page.on('request', (r) => check(/^(file|data|blob):/.test(r.url()), `${name}: asks for ${r.url()}`));
    await page.goto(`file://${path.join(dir, name)}`);
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'true', null, { timeout: 30000 })
        .catch(() => check(false, `${name}: never ready`));
    return page;
}

const read = (name) => JSON.parse(readFileSync(path.join(dir, name), 'utf8'));

/* Every number of the page is the one `trials -f json` prints. */
async function numbersAgree(page) {
    const expected = read('trials.json').trials;
    const seen = await page.evaluate(() => {
        const s = window.report.data.all[0];
        const rows = [];
        for (let r = 0; r < s.n; r++) {
            rows.push({ trial: s.trial[r], status: s.statusText(r),
                results: Object.fromEntries(Object.entries(s.results).map(([k, v]) => [k, v[r]])),
                objectives: s.objectives.map((o) => o[r]),
                dp: s.about.knobs.findIndex((k) => k.name === 'workload.dp') < 0 ? null
                    : s.knobText(r, s.about.knobs.findIndex((k) => k.name === 'workload.dp')) });
        }
        return { rows, names: s.about.objectives.map((o) => o.name) };
    });
    check(seen.rows.length === expected.length, 'the page has all trials');
    expected.forEach((trial, i) => {
        const row = seen.rows[i];
        check(row.trial === trial.trial && row.status === trial.status, `trial ${trial.trial}: status`);
        for (const [key, value] of Object.entries(row.results)) {
            const wanted = trial[key];
            check(Number.isFinite(wanted) ? value === wanted : !Number.isFinite(value),
                `trial ${trial.trial}: ${key} ${value} is not ${wanted}`);
        }
        seen.names.forEach((name, o) => check(Number.isFinite(trial.objectives[name])
            ? row.objectives[o] === trial.objectives[name] : true, `trial ${trial.trial}: ${name}`));
        if (row.dp !== null) check(row.dp === String(trial.config['workload.dp']), `trial ${trial.trial}: dp`);
    });
}

/* The front of the page, by trial number, is that of `front -f json`. */
async function frontAgrees(page) {
    const expected = read('front.json').trials.map(({ trial }) => trial);
    const seen = await page.evaluate(() => {
        const s = window.report.data.all[0];
        return s.about.front.rows.map((row) => s.trial[row]);
    });
    check(JSON.stringify(seen) === JSON.stringify(expected), `front ${seen} is not ${expected}`);
}

async function place(page, row) {
    return page.evaluate((r) => {
        const { chart, node } = window.report.charts.get('pareto');
        node.scrollIntoView({ block: 'center' });
        const s = window.report.data.all[0];
        const option = chart.getOption();
        const id = option.series.findIndex((x) => x.id === '0 front');
        const value = option.series[id].data[r];
        const [x, y] = chart.convertToPixel({ seriesIndex: id }, value.slice(0, 2));
        const box = node.getBoundingClientRect();
        return { x: box.left + x, y: box.top + y, row: value[2], trial: s.trial[value[2]],
            knob: s.knobText(value[2], 0) };
    }, row);
}

async function hoverShowsTheDesign(page) {
    const n = await page.evaluate(() => window.report.charts.get('pareto').chart.getOption().series
        .find((x) => x.id === '0 front').data.length);
    for (const at of [0, n - 1]) {
        const point = await place(page, at);
        await page.mouse.move(point.x - 40, point.y - 40);
        await page.mouse.move(point.x, point.y, { steps: 4 });
        const text = await page.locator('#tradeoffs .tip').first().innerText({ timeout: 4000 }).catch(() => '');
        check(text.includes('Trial ') && text.includes(point.knob), `hover at ${at}: "${text.slice(0, 80)}"`);
        const shown = Number((text.match(/Trial (\d+)/) || [])[1]);
        const same = await page.evaluate(([a, b]) => {
            const s = window.report.data.all[0];
            const row = (t) => s.trial.indexOf(t);
            return ['latency_s', 'network_cost_usd'].every((k) => s.results[k][row(a)] === s.results[k][row(b)]
                || (Number.isNaN(s.results[k][row(a)]) && Number.isNaN(s.results[k][row(b)])));
        }, [shown, point.trial]);
        check(shown === point.trial || same, `hover shows trial ${shown}, not ${point.trial}`);
    }
    const point = await place(page, 0);
    await page.mouse.click(point.x, point.y);
    await page.waitForTimeout(50);
    const title = await page.locator('#detail h3').innerText({ timeout: 3000 }).catch(() => '');
    check(/^Trial \d+$/.test(title), `a click keeps the design: "${title}"`);
    await page.keyboard.press('Escape');
    check(await page.locator('#detail').isHidden(), 'Escape closes the design');
}

const countOf = async (page) => Number((await page.locator('#trials-count').innerText())
    .replaceAll(',', '').match(/^\d+/)[0]);

async function brushingFilters(page) {
    const all = await countOf(page);
    const axis = await page.evaluate(() => {
        const { chart, node } = window.report.charts.get('parallel');
        node.scrollIntoView({ block: 'center' });
        const s = window.report.data.all[0];
        const option = chart.getOption();
        const dim = option.parallelAxis.findIndex((a) => a.name === 'latency');
        const layout = chart.getModel().getComponent('parallel').coordinateSystem.getAxisLayout(`dim${dim}`);
        const box = node.getBoundingClientRect();
        return { x: box.left + layout.position[0], y: box.top + layout.position[1],
            length: layout.axisExpandWidth || 0, height: box.height, n: s.n };
    });
    /* From the axis' lower end a third upwards: the smaller latencies. */
    await page.mouse.move(axis.x, axis.y - 2);
    await page.mouse.down();
    await page.mouse.move(axis.x, axis.y - axis.height * 0.2, { steps: 8 });
    await page.mouse.up();
    await page.waitForTimeout(200);
    const kept = await countOf(page);
    check(kept < all && kept > 0, `brushing keeps ${kept} of ${all} trials`);
    const expected = await page.evaluate(() => {
        const { chart } = window.report.charts.get('parallel');
        const dim = chart.getOption().parallelAxis.findIndex((a) => a.name === 'latency');
        const [[low, high]] = chart.getModel().getComponent('parallelAxis', dim).activeIntervals;
        const s = window.report.data.all[0];
        return [...s.results.latency_s].filter((v) => v >= Math.min(low, high) && v <= Math.max(low, high)).length;
    });
    check(kept === expected, `brushing keeps ${kept} trials, ${expected} lie in the range`);
    await page.getByRole('button', { name: 'Clear the marks' }).click();
    check(await countOf(page) === all, 'clearing the marks brings all trials back');
}

async function tableWorksByKeyboard(page) {
    const button = page.locator('#trials th button.sort', { hasText: 'latency' }).first();
    await button.focus();
    await page.keyboard.press('Enter');
    const order = await page.evaluate(() => [...document.querySelectorAll('#trials tbody tr')].slice(0, 2)
        .map((row) => window.report.data.all[0].results.latency_s[Number(row.dataset.row)]));
    check(order[0] <= order[1], `sorted by latency: ${order}`);
    await page.locator('#trials input[type=search]').fill('dp=8');
    const rows = await page.evaluate(() => {
        const s = window.report.data.all[0];
        const k = s.about.knobs.findIndex((x) => x.name === 'workload.dp');
        return [...document.querySelectorAll('#trials tbody tr')].map((r) => s.knobText(Number(r.dataset.row), k));
    });
    check(rows.every((text) => text === '8'), `filtered by dp=8: ${rows.slice(0, 4)}`);
}

/* What is saved of the trade-off is every trial, with the front marked. */
async function dataCanBeSaved(page) {
    const [download] = await Promise.all([page.waitForEvent('download'),
        page.getByRole('button', { name: 'Save the data of trade-off as CSV' }).click()]);
    const lines = readFileSync(await download.path(), 'utf8').trim().split('\r\n');
    const front = read('front.json').trials.map(({ trial }) => String(trial)).sort();
    check(lines.length === read('trials.json').trials.length + 1, `${lines.length} lines of the trade-off`);
    const marked = lines.filter((x) => x.split(',')[3] === 'true').map((x) => x.split(',')[1]).sort();
    check(JSON.stringify(marked) === JSON.stringify(front), `front saved as ${marked}, not ${front}`);
}

async function fits(browser, name, width, colorScheme) {
    const page = await open(browser, name, { viewport: { width, height: 800 }, colorScheme });
    const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    check(inner <= outer, `${name} at ${width}: ${inner} wide`);
    await page.close();
}

async function main() {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
    const page = await open(browser, 'normal.html');
    if (await page.evaluate(() => window.report.data.head.missing) !== null) {
        console.log('skipped: the charts were not built (no node or npm at build time)');
        await browser.close();
        process.exit(77);
    }
    await numbersAgree(page);
    await frontAgrees(page);
    await hoverShowsTheDesign(page);
    await brushingFilters(page);
    await tableWorksByKeyboard(page);
    await dataCanBeSaved(page);
    await page.close();
    await fits(browser, 'normal.html', 400, 'light');
    await fits(browser, 'normal.html', 1280, 'dark');
    for (const name of readdirSync(dir).filter((f) => f.endsWith('.html') && f !== 'normal.html')) {
        const other = await open(browser, name);
        const words = await other.locator('main').innerText();
        check(words.length > 400 && !/NaN|undefined|\[object/.test(words),
            `${name}: ${(words.match(/.{30}(NaN|undefined|\[object).{30}/s) || ['too short'])[0]}`);
        if (name.startsWith('hostile')) {
            check(words.includes('<img src=x onerror=alert('), 'a hostile reason is shown as text');
            check((await other.locator('h1').innerText()).includes('</script><b>x'), 'a hostile name is shown as text');
        }
        if (name === 'constant.html') {
            check(words.includes('no knob matters'), 'a constant objective has no important knob');
        }
        if (name === 'equal.html') {
            const n = await other.evaluate(() => window.report.data.all[0].about.front.rows.length);
            check(n === 1, `of equal points one is on the front, not ${n}`);
        }
        if (name === 'bound.html') {
            check(words.includes('proven to be within'), 'the bound is stated');
            check(words.includes('can be better than 1 (proven)'), 'the history names the bound');
        }
        if (name === 'tables.html') {
            check(words.includes('tables in place of charts: node was not there'), 'says why there are no charts');
            check(await other.locator('canvas').count() === 0, 'no chart is left');
        }
        await other.close();
    }
    await browser.close();
    console.log(`${checks} checks, ${failures} failures`);
    process.exit(failures === 0 ? 0 : 1);
}

main().catch((e) => {
    console.log(`FAIL: ${e.stack}`);
    process.exit(1);
});
