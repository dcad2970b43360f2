/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bytecode of expressions.  Operands are combined two at a time, so the stack never grows beyond
 * the depth of the tree. */
#include "psa/psa_private.h"

#include <string.h>

#define STACK (PSA__MAX_DEPTH * 2 + 8)

typedef struct {
    psa__instr *code;
    size_t n;
    const psa_tables *tables;
} emitter;

static void emit(emitter *e, int32_t code, int32_t a)
{
    psa__instr *instr = &e->code[e->n++];

    instr->code = code;
    instr->a = a;
    instr->value = 0;
}

static void emit_field(emitter *e, const psa__node *node)
{
    static const uint8_t width[] = {sizeof(int64_t), sizeof(double), sizeof(int32_t),
                                    sizeof(int32_t), sizeof(int32_t)};
    static const int32_t code[] = {PSA__LOAD_INT, PSA__LOAD_REAL, PSA__LOAD_I32, PSA__LOAD_I32,
                                   PSA__LOAD_I32};
    const psa_field *field = &e->tables->fields[node->a];

    emit(e, code[field->kind], 0);
    e->code[e->n - 1].offset = field->offset + (size_t)node->b * width[field->kind];
}

static void emit_leaf(emitter *e, const psa__node *node)
{
    switch (node->op) {
    case PSA__FIELD:
        emit_field(e, node);
        return;
    case PSA__RESULT:
        emit(e, PSA__LOAD_RESULT, 0);
        e->code[e->n - 1].offset = e->tables->results[node->a].offset;
        return;
    case PSA__FACT:
        emit(e, PSA__LOAD_FACT, node->a);
        return;
    case PSA__VAR:
        emit(e, PSA__LOAD_VAR, node->a);
        return;
    default:
        emit(e, PSA__LOAD_CONST, 0);
        e->code[e->n - 1].value = node->value;
    }
}

/* Recursion is bounded by PSA__MAX_DEPTH. */
static void emit_node(emitter *e, const psa__node *node)
{
    if (node->n == 0) {
        emit_leaf(e, node);
        return;
    }
    if (!psa__is_associative(node->op)) {
        for (size_t i = 0; i < node->n; i++)
            emit_node(e, node->arg[i]);
        emit(e, PSA__CODE_OP + (int32_t)node->op, (int32_t)node->n);
        return;
    }
    emit_node(e, node->arg[0]);
    for (size_t i = 1; i < node->n; i++) {
        emit_node(e, node->arg[i]);
        emit(e, PSA__CODE_OP + (int32_t)node->op, 2);
    }
}

bool psa__compile(cs_arena *arena, const psa_tables *tables, const psa__node *node,
                  psa__program *out)
{
    emitter e = {NULL, 0, tables};

    /* Every node gives one instruction, an associative one n - 1. */
    e.code = cs_arena_alloc(arena, (size_t)node->size * 2 * sizeof *e.code);
    if (e.code == NULL)
        return false;
    emit_node(&e, node);
    out->code = e.code;
    out->n = e.n;
    return true;
}

static double load(const psa__instr *instr, const psa__env *env)
{
    int64_t whole;
    int32_t index;
    double real;

    switch (instr->code) {
    case PSA__LOAD_INT:
        memcpy(&whole, (const char *)env->config + instr->offset, sizeof whole);
        return (double)whole;
    case PSA__LOAD_REAL:
        memcpy(&real, (const char *)env->config + instr->offset, sizeof real);
        return real;
    case PSA__LOAD_I32:
        memcpy(&index, (const char *)env->config + instr->offset, sizeof index);
        return index;
    case PSA__LOAD_RESULT:
        memcpy(&real, (const char *)env->result + instr->offset, sizeof real);
        return real;
    case PSA__LOAD_FACT:
        return env->fact[instr->a];
    case PSA__LOAD_VAR:
        return env->var[instr->a];
    default:
        return instr->value;
    }
}

double psa__run(const psa__program *program, const psa__env *env)
{
    double stack[STACK];
    size_t top = 0;

    stack[0] = 0; /* an empty program is 0 */
    for (size_t i = 0; i < program->n; i++) {
        const psa__instr *instr = &program->code[i];
        if (instr->code < PSA__CODE_OP) {
            stack[top++] = load(instr, env);
            continue;
        }
        top -= (size_t)instr->a;
        stack[top] =
            psa__apply((psa__op)(instr->code - PSA__CODE_OP), (size_t)instr->a, stack + top);
        top++;
    }
    return stack[0];
}
