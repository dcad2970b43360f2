// SPDX-License-Identifier: GPL-3.0-or-later
//
// A network drawn as its dimensions: shape, size, bandwidth as the width of the links.

const NODES = 12; /* drawn at most; the number beside says the size */

function circlePoints(n, radius, centre) {
    return Array.from({ length: n }, (_, i) => {
        const angle = (2 * Math.PI * i) / n - Math.PI / 2;
        return [centre + radius * Math.cos(angle), centre + radius * Math.sin(angle)];
    });
}

function line(a, b) {
    return svg('line', { x1: a[0].toFixed(1), y1: a[1].toFixed(1), x2: b[0].toFixed(1),
        y2: b[1].toFixed(1) });
}

const SHAPES = {
    ring: (points) => points.map((p, i) => line(p, points[(i + 1) % points.length])),
    fully_connected: (points) =>
        points.flatMap((p, i) => points.slice(i + 1).map((q) => line(p, q))),
    switch: (points, centre) => [
        ...points.map((p) => line(p, [centre, centre])),
        svg('rect', { x: centre - 7, y: centre - 7, width: 14, height: 14, rx: 3, class: 'hub' }),
    ],
    mesh: (points) => points.slice(1).map((p, i) => line(points[i], p)),
};

/* One dimension as a drawing of 84 x 84. */
function drawShape(topology, npus, bandwidth, most) {
    const n = Math.min(npus, topology === 'fully_connected' ? 8 : NODES);
    const points = topology === 'mesh'
        ? Array.from({ length: n }, (_, i) => [10 + (64 * i) / Math.max(1, n - 1), 42])
        : circlePoints(n, 31, 42);
    const width = 1 + 3 * Math.sqrt(most > 0 ? bandwidth / most : 0);
    const shape = SHAPES[topology] || SHAPES.ring;
    return svg('svg', { viewBox: '0 0 84 84', class: 'shape', 'aria-hidden': 'true' },
        svg('g', { class: 'links', 'stroke-width': width.toFixed(2) }, shape(points, 42)),
        svg('g', { class: 'nodes' },
            points.map(([x, y]) => svg('circle', { cx: x.toFixed(1), cy: y.toFixed(1), r: 4 }))));
}

/* All dimensions of more than one NPU of a trial's configuration. */
function drawNetwork(config, most) {
    const npus = config['network.npus'];
    const list = el('ol', { class: 'network' });
    npus.forEach((n, d) => {
        if (n <= 1) return;
        const topology = config['network.topology'][d];
        const bandwidth = config['network.bandwidth'][d];
        const algorithm = config['collective.algorithm'][d];
        list.append(el('li', {},
            drawShape(topology, n, bandwidth, most),
            el('span', { class: 'size' }, `${n}`),
            el('span', {}, topology.replaceAll('_', ' ')),
            el('span', {}, quantity(bandwidth, 'B/s')),
            el('span', { class: 'dim' }, algorithm.replaceAll('_', ' '))));
    });
    if (!list.children.length) list.append(el('li', {}, 'one NPU, no network'));
    return list;
}
