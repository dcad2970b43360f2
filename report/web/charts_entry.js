// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts of Apache ECharts the page uses; bundled by the build into one script.
import * as core from 'echarts/core';
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from 'echarts/charts';
import {
    AriaComponent,
    DataZoomInsideComponent,
    GridComponent,
    LegendComponent,
    MarkLineComponent,
    ParallelComponent,
    TooltipComponent,
} from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';

core.use([
    AriaComponent, BarChart, CanvasRenderer, CustomChart, DataZoomInsideComponent, GridComponent,
    LegendComponent, LineChart, MarkLineComponent, ParallelChart, ParallelComponent, ScatterChart,
    TooltipComponent,
]);

window.echarts = core;
