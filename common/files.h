/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A set of input files in memory: what a problem was read from, so that a study can keep the texts
 * and be opened without the files. */
#ifndef CS_FILES_H
#define CS_FILES_H

#include "common/common.h"

typedef struct cs_files cs_files;

cs_files *cs_files_create(void);        /* NULL when out of memory; the caller owns it */
void cs_files_destroy(cs_files *files); /* NULL is a no-op */
/* Copies one file; a path that is there already is left alone. CS_ENOMEM. O(files). */
CS_MUST_USE cs_status cs_files_add(cs_files *files, const char *path, const char *text, size_t n);
size_t cs_files_count(const cs_files *files);
const char *cs_files_path(const cs_files *files, size_t i);
const char *cs_files_text(const cs_files *files, size_t i, size_t *n);
/* Hash of all texts in order. */
uint64_t cs_files_hash(const cs_files *files);

/* From now on cs_doc_load adds each file it reads on this thread to the (borrowed) set; NULL ends
 * that. */
void cs_files_record_begin(cs_files *files);
/* From now on cs_doc_load on this thread reads from the (borrowed) set and never from the disk;
 * NULL ends that. */
void cs_files_stand_in(const cs_files *files);
/* The hooks of cs_doc_load: true when a set stands in for the disk (*text NULL: not in the set). */
bool cs_files_intercept(const char *path, const char **text, size_t *n);
CS_MUST_USE cs_status cs_files_record(const char *path, const char *text, size_t n);

#endif
