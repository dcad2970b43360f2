// SPDX-License-Identifier: GPL-3.0-or-later
//
// Elements, numbers and colours.  Texts of a study only ever become text nodes.

/* An element with attributes; children are nodes or texts, absent ones are left out. */
function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    fill(node, attributes, children);
    return node;
}

/* The same in SVG. */
function svg(name, attributes = {}, ...children) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    fill(node, attributes, children);
    return node;
}

function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
        else if (key === 'style') Object.assign(node.style, value);
        else node.setAttribute(key, value === true ? '' : value);
    }
    for (const child of children.flat()) {
        if (child === undefined || child === null || child === false) continue;
        node.append(child);
    }
}

/* ---- numbers ---- */

const SCALES = {
    s: [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']],
    B: [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']],
    'B/s': [[1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1, 'B/s']],
    J: [[1e9, 'GJ'], [1e6, 'MJ'], [1e3, 'kJ'], [1, 'J']],
    '$': [[1e9, 'bn'], [1e6, 'M'], [1e3, 'k'], [1, '']],
};

/* Digits as people write them: thousands apart, an exponent only when very large or small. */
function plain(value, digits = 4) {
    if (!Number.isFinite(value)) return '–';
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e9 || size < 1e-4)) {
        const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
        return `${Number(mantissa)} × 10${superscript(Number(exponent))}`;
    }
    return Number(value.toPrecision(digits)).toLocaleString('en-US', { maximumFractionDigits: 8 });
}

function superscript(n) {
    return String(n).replace(/[-0-9]/g, (c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)]));
}

/* A quantity in SI base units in its fitting unit. */
function quantity(value, unit, digits = 4) {
    if (value === null || !Number.isFinite(value)) return '–';
    const scales = SCALES[unit];
    if (!scales) return unit ? `${plain(value, digits)} ${unit}` : plain(value, digits);
    const [factor, name] =
        value === 0 ? scales.find(([f]) => f === 1)
                    : scales.find(([f]) => Math.abs(value) >= f) || scales[scales.length - 1];
    const number = plain(value / factor, digits);
    return unit === '$' ? `$${number}${name && ` ${name}`}` : `${number} ${name}`;
}

function percent(share, digits = 3) {
    if (!Number.isFinite(share)) return '–';
    if (share > 0 && share < 0.0005) return '< 0.1 %';
    return `${Number((100 * share).toPrecision(digits)).toLocaleString('en-US')} %`;
}

/* A count given as decimal text of any length. */
function count(text) {
    const value = Number(text);
    return value < 1e9 ? value.toLocaleString('en-US') : plain(value, 4);
}

function plural(n, one, many = `${one}s`) {
    return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;
}

/* ---- colours: Okabe and Ito's, told apart by the colour-blind; shapes say the same ---- */

const LIGHT = {
    series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'],
    bad: '#c44601', ink: '#1c2733', dim: '#5d6b7a', line: '#d9dfe6', paper: '#ffffff',
    ramp: ['#0b4f8a', '#3f8fc4', '#86bfe0', '#c5d6e0'],
};
const DARK = {
    series: ['#5fb0e5', '#f08a4b', '#3fc79a', '#e3a2c6', '#f2c14e', '#9ad4f5'],
    bad: '#f08a4b', ink: '#e6ebf0', dim: '#9aa7b4', line: '#36414d', paper: '#182029',
    ramp: ['#bfe2f8', '#6cb5e4', '#3a7fae', '#3a4c5b'],
};

function theme() {
    return isDark() ? DARK : LIGHT;
}

const darkQuery = window.matchMedia('(prefers-color-scheme: dark)');

function isDark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === 'dark' : darkQuery.matches;
}

const TIME_PARTS = [
    ['compute_s', 'compute', '#0072b2'],
    ['exposed_by_axis_s.tp', 'tensor parallel', '#e69f00'],
    ['exposed_by_axis_s.sp', 'sequence parallel', '#f0e442'],
    ['exposed_by_axis_s.ep', 'expert parallel', '#cc79a7'],
    ['exposed_by_axis_s.dp', 'data parallel', '#009e73'],
    ['exposed_by_axis_s.pp', 'stage boundary', '#56b4e9'],
    ['bubble_s', 'bubble', '#8a94a0'],
    ['idle_s', 'idle', '#c3cad2'],
];

const MEMORY_PARTS = [
    ['memory_by_part_bytes.weights', 'weights', '#0072b2'],
    ['memory_by_part_bytes.gradients', 'gradients', '#56b4e9'],
    ['memory_by_part_bytes.optimizer', 'optimizer', '#009e73'],
    ['memory_by_part_bytes.activations', 'activations', '#e69f00'],
    ['memory_by_part_bytes.gathered', 'gathered weights', '#f0e442'],
    ['memory_by_part_bytes.communication', 'buffers', '#cc79a7'],
    ['memory_by_part_bytes.logits', 'logits', '#d55e00'],
    ['memory_by_part_bytes.kv_cache', 'KV cache', '#8a94a0'],
    ['memory_by_part_bytes.transient', 'transient', '#c3cad2'],
];

/* The number at "a.b" of a trial. */
function part(trial, path) {
    return path.split('.').reduce((at, key) => (at ? at[key] : undefined), trial);
}

/* Offers a file made here. */
function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = el('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function csvField(value) {
    const text = value === null || value === undefined || Number.isNaN(value) ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toCsv(header, rows) {
    return `${[header, ...rows].map((row) => row.map(csvField).join(',')).join('\r\n')}\r\n`;
}

/* Buttons that save a chart's data; header() and rows() are asked when one is pressed. */
function dataButtons(name, header, rows) {
    const file = (kind) => `${name.replace(/[^A-Za-z0-9._-]+/g, '-')}.${kind}`;
    const records = () => rows().map((row) => Object.fromEntries(row.map((value, i) =>
        [header()[i], Number.isNaN(value) ? null : value])));
    const button = (text, label, onclick) => el('button', { type: 'button', class: 'quiet small',
        'aria-label': label, onclick }, text);
    return el('span', { class: 'save' }, 'Data',
        button('CSV', `Save the data of ${name} as CSV`, () => save(file('csv'), 'text/csv', toCsv(header(), rows()))),
        button('JSON', `Save the data of ${name} as JSON`, () => save(file('json'), 'application/json',
            JSON.stringify(records(), null, 1))));
}
