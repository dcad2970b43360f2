/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Typed tables: one set of cells, written for people, as CSV or as JSON. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *text; /* NULL for numbers and absent texts; owned */
    int64_t integer;
    double real;
} cell;

struct report_table {
    const report_column *column;
    size_t n_columns;
    cell *cell;
    size_t n, capacity;
    bool failed; /* out of memory */
};

report_table *report_table_create(const report_column *columns, size_t n)
{
    report_table *table = calloc(1, sizeof *table);

    if (table == NULL)
        return NULL;
    table->column = columns;
    table->n_columns = n;
    return table;
}

void report_table_destroy(report_table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->n; i++)
        free(table->cell[i].text);
    free(table->cell);
    free(table);
}

static cell *next_cell(report_table *table)
{
    if (table == NULL || table->failed)
        return NULL;
    cell *grown = cs_room(table->cell, &table->capacity, table->n + 1, sizeof *grown);
    if (grown == NULL) {
        table->failed = true;
        return NULL;
    }
    table->cell = grown;
    table->cell[table->n] = (cell){NULL, 0, NAN};
    return &table->cell[table->n++];
}

void report_table_text(report_table *table, const char *text)
{
    cell *c = next_cell(table);

    if (c == NULL || text == NULL)
        return;
    c->text = strdup(text);
    if (c->text == NULL)
        table->failed = true;
}

void report_table_printf(report_table *table, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    report_table_text(table, text);
}

void report_table_integer(report_table *table, int64_t value)
{
    cell *c = next_cell(table);

    if (c != NULL)
        c->integer = value;
}

void report_table_real(report_table *table, double value)
{
    cell *c = next_cell(table);

    if (c != NULL)
        c->real = value;
}

size_t report_table_rows(const report_table *table)
{
    return table->n_columns == 0 ? 0 : table->n / table->n_columns;
}

static const char *cell_for_people(const report_column *column, const cell *c, char text[64])
{
    switch (column->kind) {
    case REPORT_INTEGER:
        snprintf(text, 64, "%lld", (long long)c->integer);
        return text;
    case REPORT_REAL:
        return report_quantity(c->real, column->unit, text);
    case REPORT_SHARE:
        snprintf(text, 64, isfinite(c->real) ? "%.1f %%" : "-", 100.0 * c->real);
        return text;
    default:
        return c->text == NULL ? "-" : c->text;
    }
}

static const char *cell_for_csv(const report_column *column, const cell *c, char text[64])
{
    if (column->kind == REPORT_INTEGER)
        return cell_for_people(column, c, text);
    if (column->kind == REPORT_TEXT)
        return c->text == NULL ? "" : c->text;
    return isfinite(c->real) ? cs_double_text(c->real, text) : "";
}

static cs_json *cell_json(const report_column *column, const cell *c)
{
    if (column->kind == REPORT_INTEGER)
        return cs_json_int(c->integer);
    if (column->kind == REPORT_TEXT)
        return cs_json_string(c->text);
    return cs_json_real(c->real);
}

cs_json *report_table_row_json(const report_table *table, size_t row)
{
    cs_json *object = cs_json_object();

    for (size_t c = 0; c < table->n_columns; c++)
        cs_json_set(object, table->column[c].key,
                    cell_json(&table->column[c], &table->cell[row * table->n_columns + c]));
    return object;
}

cs_json *report_table_json(const report_table *table)
{
    cs_json *rows;

    if (table == NULL || table->failed)
        return NULL;
    rows = cs_json_array();
    for (size_t r = 0; r < report_table_rows(table); r++)
        cs_json_push(rows, report_table_row_json(table, r));
    return rows;
}

void report_csv_field(FILE *out, const char *text, bool last)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
    } else {
        fputc('"', out);
        for (const char *p = text; *p != '\0'; p++) {
            if (*p == '"')
                fputc('"', out);
            fputc(*p, out);
        }
        fputc('"', out);
    }
    fputc(last ? '\n' : ',', out);
}

static void write_csv(const report_table *table, FILE *out)
{
    const size_t n = table->n_columns;
    char text[64];

    for (size_t c = 0; c < n; c++)
        report_csv_field(out, table->column[c].key, c + 1 == n);
    for (size_t i = 0; i < report_table_rows(table) * n; i++)
        report_csv_field(out, cell_for_csv(&table->column[i % n], &table->cell[i], text),
                         i % n + 1 == n);
}

/* Columns a character takes on a terminal: UTF-8 continuation bytes take none. */
static size_t shown_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void put_padded(const char *text, size_t width, bool right, bool last, FILE *out)
{
    const size_t shown = shown_width(text);
    const int pad = shown < width ? (int)(width - shown) : 0;

    if (right)
        fprintf(out, "%*s%s", pad, "", text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : pad, "");
    fputs(last ? "\n" : "  ", out);
}

static bool has_titles(const report_table *table)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (table->column[c].title[0] != '\0')
            return true;
    return false;
}

static cs_status write_people(const report_table *table, FILE *out, cs_error *err)
{
    const size_t n = table->n_columns;
    size_t *width = calloc(n + 1, sizeof *width);
    char text[64];

    if (width == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for a table of %zu columns", n);
    for (size_t c = 0; c < n; c++)
        width[c] = shown_width(table->column[c].title);
    for (size_t i = 0; i < report_table_rows(table) * n; i++) {
        size_t shown = shown_width(cell_for_people(&table->column[i % n], &table->cell[i], text));
        if (shown > width[i % n])
            width[i % n] = shown;
    }
    for (size_t c = 0; c < n && has_titles(table); c++)
        put_padded(table->column[c].title, width[c], table->column[c].kind != REPORT_TEXT,
                   c + 1 == n, out);
    for (size_t i = 0; i < report_table_rows(table) * n; i++)
        put_padded(cell_for_people(&table->column[i % n], &table->cell[i], text), width[i % n],
                   table->column[i % n].kind != REPORT_TEXT, i % n + 1 == n, out);
    free(width);
    return CS_OK;
}

static void put_markdown(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void write_markdown(const report_table *table, FILE *out)
{
    const size_t n = table->n_columns;
    char text[64];

    for (size_t c = 0; c < n; c++) {
        fputs(c > 0 ? " | " : "| ", out);
        put_markdown(table->column[c].title, out);
    }
    fputs(" |\n", out);
    for (size_t c = 0; c < n; c++)
        fputs(table->column[c].kind == REPORT_TEXT ? "|---" : "|--:", out);
    fputs("|\n", out);
    for (size_t i = 0; i < report_table_rows(table) * n; i++) {
        fputs(i % n > 0 ? " | " : "| ", out);
        put_markdown(cell_for_people(&table->column[i % n], &table->cell[i], text), out);
        if (i % n + 1 == n)
            fputs(" |\n", out);
    }
}

static cs_status write_json(const report_table *table, FILE *out, cs_error *err)
{
    cs_json *rows = report_table_json(table);
    char *text = cs_json_dump(rows, true);

    cs_json_destroy(rows);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    fprintf(out, "%s\n", text);
    free(text);
    return CS_OK;
}

cs_status report_table_write(const report_table *table, report_format format, FILE *out,
                             cs_error *err)
{
    cs_status status = CS_OK;

    if (table == NULL || table->failed)
        return cs_fail(err, CS_ENOMEM, "out of memory while making a table");
    if (format == REPORT_JSON)
        CS_TRY(write_json(table, out, err));
    else if (format == REPORT_CSV)
        write_csv(table, out);
    else if (format == REPORT_MARKDOWN)
        write_markdown(table, out);
    else
        CS_TRY(write_people(table, out, err));
    if (ferror(out))
        return cs_fail(err, CS_EIO, "cannot write the table");
done:
    return status;
}
