// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bundles charts_entry.js, with the notices its licences ask to keep, into charts.js of the current
// folder.
import { readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync('node_modules/echarts/package.json', 'utf8'));
const notice = readFileSync('node_modules/echarts/NOTICE', 'utf8').trim();
const licence = `/*!
${notice}

Version ${version}, a build of the parts used, under the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0). It includes zrender, Copyright (c) Baidu Inc.
(BSD 3-Clause), and tslib, Copyright (c) Microsoft Corporation (0BSD).
*/`;

const result = await build({
    entryPoints: ['charts_entry.js'],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2019',
    legalComments: 'none',
    banner: { js: licence },
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
});
// A closing tag inside the code would end the page's script element.
writeFileSync('charts.js', result.outputFiles[0].text.replaceAll('</script', '<\\/script'));
