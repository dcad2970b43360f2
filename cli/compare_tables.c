/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A comparison as tables: all figures for scripts, and a choice of them for people. */
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Three columns for a budget: median regret and quartiles. */
#define REGRET(n, text)                                                                            \
    {"regret_" #n, #n, REPORT_SHARE, CS_DIMENSIONLESS,                                             \
     "median regret after " text " evaluations"},                                                  \
        {"regret_" #n "_q1", "q1", REPORT_SHARE, CS_DIMENSIONLESS, "its lower quartile"},          \
    {                                                                                              \
        "regret_" #n "_q3", "q3", REPORT_SHARE, CS_DIMENSIONLESS, "its upper quartile"             \
    }

const report_column cli_compare_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, "problem of the suite"},
    {"agent", "agent", REPORT_TEXT, CS_DIMENSIONLESS, "agent"},
    {"runs", "runs", REPORT_INTEGER, CS_DIMENSIONLESS, "seeds"},
    REGRET(30, "30"),
    REGRET(100, "100"),
    REGRET(300, "300"),
    REGRET(1000, "1,000"),
    REGRET(3000, "3,000"),
    REGRET(10000, "10,000"),
    {"regret_final", "final", REPORT_SHARE, CS_DIMENSIONLESS,
     "median regret |best / optimum - 1| at the end; 0 when better"},
    {"ci_low", "95 % from", REPORT_SHARE, CS_DIMENSIONLESS, "bootstrap interval of that median"},
    {"ci_high", "to", REPORT_SHARE, CS_DIMENSIONLESS, "its upper end"},
    {"success_1", "reach 1 %", REPORT_SHARE, CS_DIMENSIONLESS, "share of runs within 1 %"},
    {"ert_1", "ERT 1 %", REPORT_REAL, CS_DIMENSIONLESS, "evaluations of all runs over successes"},
    {"median_1", "median 1 %", REPORT_REAL, CS_DIMENSIONLESS, "median evaluations to 1 %"},
    {"times_fewer", "times fewer", REPORT_REAL, CS_DIMENSIONLESS,
     "uniform draws to 1 % over that median"},
    {"success_5", "reach 5 %", REPORT_SHARE, CS_DIMENSIONLESS, "share of runs within 5 %"},
    {"ert_5", "ERT 5 %", REPORT_REAL, CS_DIMENSIONLESS, "likewise for 5 %"},
    {"median_5", "median 5 %", REPORT_REAL, CS_DIMENSIONLESS, "median evaluations to 5 %"},
    {"area", "anytime", REPORT_REAL, CS_DIMENSIONLESS,
     "mean over log-spaced budgets of log regret, 0 (best) to 1"},
    {"rank", "rank", REPORT_REAL, CS_DIMENSIONLESS,
     "mean rank, ties averaged, by final regret (by evaluations to target where runs stop there)"},
    {"p", "p", REPORT_REAL, CS_DIMENSIONLESS, "Wilcoxon against the best agent, Holm"},
    {"a12", "A12", REPORT_REAL, CS_DIMENSIONLESS, "chance that the best agent does better"},
    {"verdict", "verdict", REPORT_TEXT, CS_DIMENSIONLESS, "best, tied (not told apart) or worse"},
    {"agent_s_per_proposal", "s/proposal", REPORT_REAL, CS_SECONDS, "time inside the agent"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static const report_column problem_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"valid_points", "valid points", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"optimum", "optimum", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"optimum_kind", "known by", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"long_runs", "long runs", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"long_runs_agreeing", "agreeing", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"share_within_1_percent", "within 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"uniform_draws", "draws", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"uniform_hits", "hits", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"random_median", "uniform draws to 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"random_median_low", "at least (95 %)", REPORT_REAL, CS_DIMENSIONLESS, NULL},
};

static const report_column fact_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"valid_points", "valid points", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"optimum", "optimum", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"kind", "known by", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"share", "share within 1 %", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"random", "uniform's median to 1 %", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

/* The budgets come last: those beyond the suite's are left out. */
static const report_column regret_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"agent", "agent", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"final", "final regret, 95 %", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"30", "at 30, quartiles", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"100", "100", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"300", "300", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"1000", "1,000", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"3000", "3,000", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"10000", "10,000", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static const report_column target_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"agent", "agent", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"runs", "runs", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"success_1", "reach 1 %", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"median_1", "median 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"times_fewer", "uniform / median", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"ert_1", "ERT 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"success_5", "reach 5 %", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"median_5", "median 5 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"ert_5", "ERT 5 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"area", "anytime", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"rank", "rank", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"p", "p", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"a12", "A12", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"verdict", "verdict", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"agent_s_per_proposal", "s/proposal", REPORT_REAL, CS_SECONDS, NULL},
};

static const report_column pair_columns[] = {
    {"first", "agent", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"second", "against", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"seeds", "seeds", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"median_first", "median", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"median_second", "the other's", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"wins", "wins", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"ties", "ties", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"losses", "losses", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"p", "p", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"p_holm", "p (Holm)", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"verdict", "at p < 0.01", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static const report_column summary_columns[] = {
    {"first", "agent", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"second", "against", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"problems", "problems", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"better", "better (p < 0.01)", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"better_holm", "also with Holm", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"tied", "tied", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"worse", "worse (p < 0.01)", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"median_not_larger", "median no larger", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
};

static const report_column lottery_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"agent", "agent", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"settings", "settings", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"defaults", "defaults' regret", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"best", "best", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"median", "median", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"worst", "worst", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"as_good", "as good as the defaults", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"ert_defaults", "defaults' ERT 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"ert_median", "median ERT 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
};

static void add_tests(report_table *table, const search_compare_row *r)
{
    report_table_real(table, r->area);
    report_table_real(table, r->rank);
    report_table_real(table, r->p);
    report_table_real(table, r->a12);
    report_table_text(table, r->best ? "best" : r->tied ? "tied" : "worse");
    report_table_real(table, r->agent_s_per_proposal);
}

static void fill_rows(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_rows; i++) {
        const search_compare_row *r = &result->rows[i];
        report_table_text(table, result->problems[r->problem].label);
        report_table_text(table, r->agent);
        report_table_integer(table, (int64_t)r->runs);
        for (size_t c = 0; c < SEARCH_N_CHECKPOINTS; c++) {
            report_table_real(table, r->regret[c]);
            report_table_real(table, r->low[c]);
            report_table_real(table, r->high[c]);
        }
        report_table_real(table, r->final);
        report_table_real(table, r->ci_low);
        report_table_real(table, r->ci_high);
        report_table_real(table, r->success_1);
        report_table_real(table, r->ert_1);
        report_table_real(table, r->median_1);
        report_table_real(table, r->speedup);
        report_table_real(table, r->success_5);
        report_table_real(table, r->ert_5);
        report_table_real(table, r->median_5);
        add_tests(table, r);
    }
}

static void fill_problems(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_problems; i++) {
        const search_compare_problem *p = &result->problems[i];
        report_table_text(table, p->label);
        report_table_text(table, p->valid_points);
        report_table_real(table, p->optimum);
        report_table_text(table, p->kind);
        report_table_integer(table, (int64_t)p->references);
        report_table_integer(table, (int64_t)p->agreeing);
        report_table_real(table, p->share_1);
        report_table_integer(table, (int64_t)p->draws);
        report_table_integer(table, (int64_t)p->hits);
        report_table_real(table, p->random_median);
        report_table_real(table, p->random_least);
    }
}

static const char *count_text(double value, char text[64])
{
    return isfinite(value) ? report_count((unsigned __int128)(value + 0.5), text) : "-";
}

static void add_share(report_table *table, const search_compare_problem *p)
{
    char median[64], least[64];

    if (p->draws == 0) {
        report_table_printf(table, isnan(p->share_1) ? "-" : "%.4g", p->share_1);
        report_table_text(table, count_text(p->random_median, median));
        return;
    }
    report_table_printf(table, "%llu of %s draws", (unsigned long long)p->hits,
                        report_count(p->draws, median));
    if (p->hits == 0)
        report_table_printf(table, "> %s (95 %%)", count_text(p->random_least, least));
    else
        report_table_printf(table, "%s (> %s)", count_text(p->random_median, median),
                            count_text(p->random_least, least));
}

static void fill_facts(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_problems; i++) {
        const search_compare_problem *p = &result->problems[i];
        report_table_text(table, p->label);
        report_table_text(table, p->valid_points);
        report_table_real(table, p->optimum);
        if (strcmp(p->kind, "best_known") != 0)
            report_table_text(table, p->kind);
        else if (p->references == 0)
            report_table_text(table, "best of all runs");
        else
            report_table_printf(table, "best of all runs; %zu of %zu long runs end there",
                                p->agreeing, p->references);
        add_share(table, p);
    }
}

/* "3.21 % (1.2 - 5.0)"; "none" before the first feasible design. */
static void add_range(report_table *table, double middle, double low, double high)
{
    char from[32] = "none", to[32] = "none";

    if (isfinite(low))
        snprintf(from, sizeof from, "%.3g", 100.0 * low);
    if (isfinite(high))
        snprintf(to, sizeof to, "%.3g", 100.0 * high);
    if (isfinite(middle))
        report_table_printf(table, "%.3g %% (%s - %s)", 100.0 * middle, from, to);
    else
        report_table_printf(table, "none (%s - %s)", from, to);
}

/* Settings of the lottery have a table of their own. */
static bool for_people(const search_compare_row *r)
{
    return r->runs > 0 && strchr(r->agent, '~') == NULL;
}

static size_t checkpoints(const search_compare_result *result)
{
    size_t n = 0;

    for (size_t i = 0; i < result->n_rows; i++)
        for (size_t c = n; c < SEARCH_N_CHECKPOINTS; c++)
            if (!isnan(result->rows[i].regret[c]))
                n = c + 1;
    return n;
}

static void fill_regret(const search_compare_result *result, report_table *table)
{
    const size_t n = checkpoints(result);

    for (size_t i = 0; i < result->n_rows; i++) {
        const search_compare_row *r = &result->rows[i];
        if (!for_people(r))
            continue;
        report_table_text(table, result->problems[r->problem].label);
        report_table_text(table, r->agent);
        add_range(table, r->final, r->ci_low, r->ci_high);
        for (size_t c = 0; c < n; c++)
            add_range(table, r->regret[c], r->low[c], r->high[c]);
    }
}

static void fill_targets(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_rows; i++) {
        const search_compare_row *r = &result->rows[i];
        if (!for_people(r))
            continue;
        report_table_text(table, result->problems[r->problem].label);
        report_table_text(table, r->agent);
        report_table_integer(table, (int64_t)r->runs);
        report_table_real(table, r->success_1);
        report_table_real(table, r->median_1);
        report_table_real(table, r->speedup);
        report_table_real(table, r->ert_1);
        report_table_real(table, r->success_5);
        report_table_real(table, r->median_5);
        report_table_real(table, r->ert_5);
        add_tests(table, r);
    }
}

static void fill_pairs(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_pairs; i++) {
        const search_compare_pair *p = &result->pairs[i];
        report_table_text(table, p->first);
        report_table_text(table, p->second);
        report_table_text(table, result->problems[p->problem].label);
        report_table_integer(table, (int64_t)p->n);
        report_table_real(table, p->median[0]);
        report_table_real(table, p->median[1]);
        report_table_integer(table, (int64_t)p->wins);
        report_table_integer(table, (int64_t)p->ties);
        report_table_integer(table, (int64_t)(p->n - p->wins - p->ties));
        report_table_real(table, p->p);
        report_table_real(table, p->holm);
        report_table_text(table, p->better ? "better" : p->worse ? "worse" : "tied");
    }
}

static void fill_summary(const search_compare_result *result, report_table *table)
{
    for (size_t k = 0; k < result->n_pairs; k += result->n_problems) {
        const search_compare_pair *pairs = &result->pairs[k];
        int64_t n = 0, better = 0, holm = 0, worse = 0, no_larger = 0;
        for (size_t i = 0; i < result->n_problems; i++) {
            n += pairs[i].n > 0;
            better += pairs[i].better;
            holm += pairs[i].better && pairs[i].holm < 0.01;
            worse += pairs[i].worse;
            no_larger += pairs[i].n > 0 && pairs[i].median[0] <= pairs[i].median[1];
        }
        report_table_text(table, pairs->first);
        report_table_text(table, pairs->second);
        report_table_integer(table, n);
        report_table_integer(table, better);
        report_table_integer(table, holm);
        report_table_integer(table, n - better - worse);
        report_table_integer(table, worse);
        report_table_integer(table, no_larger);
    }
}

static void fill_lottery(const search_compare_result *result, report_table *table)
{
    for (size_t i = 0; i < result->n_lottery; i++) {
        const search_compare_lottery *l = &result->lottery[i];
        report_table_text(table, result->problems[l->problem].label);
        report_table_text(table, l->agent);
        report_table_integer(table, (int64_t)l->configs);
        report_table_real(table, l->own);
        report_table_real(table, l->best);
        report_table_real(table, l->median);
        report_table_real(table, l->worst);
        report_table_real(table, l->as_good);
        report_table_real(table, l->ert_own);
        report_table_real(table, l->ert_median);
    }
}

static report_table *made(const search_compare_result *result, const report_column *columns,
                          size_t n, void (*fill)(const search_compare_result *, report_table *))
{
    report_table *table = report_table_create(columns, n);

    fill(result, table);
    return table;
}

void cli_comparison_init(const search_compare_result *result, cli_comparison *out)
{
    const size_t shown = CS_COUNT(regret_columns) - SEARCH_N_CHECKPOINTS + checkpoints(result);

    *out = (cli_comparison){0};
    out->problems = made(result, problem_columns, CS_COUNT(problem_columns), fill_problems);
    out->rows = made(result, cli_compare_columns, CS_COUNT(cli_compare_columns) - 1, fill_rows);
    out->facts = made(result, fact_columns, CS_COUNT(fact_columns), fill_facts);
    out->targets = made(result, target_columns, CS_COUNT(target_columns), fill_targets);
    if (!(result->stop_within > 0.0))
        out->regret = made(result, regret_columns, shown, fill_regret);
    if (result->n_pairs > 0) {
        out->pairs = made(result, pair_columns, CS_COUNT(pair_columns), fill_pairs);
        out->summary = made(result, summary_columns, CS_COUNT(summary_columns), fill_summary);
    }
    if (result->n_lottery > 0)
        out->lottery = made(result, lottery_columns, CS_COUNT(lottery_columns), fill_lottery);
}

void cli_comparison_fini(cli_comparison *tables)
{
    report_table_destroy(tables->problems);
    report_table_destroy(tables->rows);
    report_table_destroy(tables->facts);
    report_table_destroy(tables->regret);
    report_table_destroy(tables->targets);
    report_table_destroy(tables->pairs);
    report_table_destroy(tables->summary);
    report_table_destroy(tables->lottery);
    *tables = (cli_comparison){0};
}
