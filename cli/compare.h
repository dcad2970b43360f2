/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tables of a comparison. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "report/report.h"

/* `problems`, `rows` and `regret` are always there; of the others those that the suite asks for. */
typedef struct {
    report_table *problems, *rows; /* all figures, for scripts */
    report_table *facts;           /* problems, */
    report_table *regret;          /* regret by evaluations with quartiles, */
    report_table *targets;         /* and runs to target with tests, for people */
    report_table *pairs, *summary; /* pairs by problem, and over the problems */
    report_table *lottery;
} cli_comparison;

/* Columns of `rows`: the dictionary of the output; a NULL key ends. */
extern const report_column cli_compare_columns[];

/* `result` must outlive the tables.  Out of memory shows when they are written. */
void cli_comparison_init(const search_compare_result *result, cli_comparison *out);
void cli_comparison_fini(cli_comparison *tables);

#endif
