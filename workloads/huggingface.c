/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Hugging Face config.json -> text of a model file. */
#include "workloads/workload_private.h"

cs_status wl__hf_text(const cs_doc *doc, cs_arena *arena, const char **out, cs_error *err)
{
    (void)arena;
    (void)out;
    return cs_doc_fail(doc, cs_doc_root(doc), err, "unknown model_type");
}
