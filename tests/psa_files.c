/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What every bad PSA, system or device file is told: status, position, nearest name. */
#include "tests/psa_fixture.h"

#include <unistd.h>

#define WORKLOAD "workloads: [{model: m.yaml, global_batch: 2048, sequence: 1024}]\n"

/* What a wrong file is told: status, position and the nearest name. */
static void test_bad_psa_files(void **state)
{
    static const struct {
        const char *psa;
        cs_status status;
        const char *message;
    } cases[] = {
        {"", CS_EPARSE, "test.yaml:1:1: the file is empty"},
        {"\n\n# nothing\n", CS_EPARSE, "the file is empty"},
        {"psa: 2\n", CS_ESCHEMA, "test.yaml:1:6: expected a whole number from 1 to 1, found 2"},
        {"name: x\n", CS_ESCHEMA, "the key 'psa' is missing"},
        {"- psa\n", CS_ESCHEMA, "expected a mapping"},
        {"psa: 1\nknob: {}\n", CS_ESCHEMA,
         "test.yaml:2:1: unknown key 'knob'; did you mean 'knobs'?"},
        {"psa: 1\npsa: 1\n", CS_ESCHEMA, "test.yaml:2:1: duplicate key 'psa'"},
        {"psa: 1\nknobs:\n\tworkload.dp: [1]\n", CS_EPARSE, "tab"},
        {"psa: 1\nknobs: {workload.dpx: [1]}\n", CS_ESCHEMA,
         "test.yaml:2:9: unknown knob 'workload.dpx'; did you mean 'workload.dp'?"},
        {"psa: 1\nknobs: {workload.dp: {valeus: [1]}}\n", CS_ESCHEMA,
         "test.yaml:2:23: unknown key 'valeus'; did you mean 'values'?"},
        {"psa: 1\nknobs: {workload.dp: {when: workload.tp > 1}}\n", CS_ESCHEMA, "has no values"},
        {"psa: 1\nknobs: {workload.dp: {values: []}}\n", CS_ESCHEMA, "at least one value"},
        {"psa: 1\nknobs: {workload.dp: {values: [1, 1]}}\n", CS_ESCHEMA,
         "the value 1 stands twice"},
        {"psa: 1\nknobs: {workload.dp: {values: [1.5]}}\n", CS_ESCHEMA, "whole number"},
        {"psa: 1\nknobs: {workload.dp: {values: [0]}}\n", CS_ESCHEMA, "outside 1"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], divisors: 4}}\n", CS_ESCHEMA,
         "two kinds of values"},
        {"psa: 1\nknobs: {workload.dp: {powers_of_two: [3, 8]}}\n", CS_ESCHEMA,
         "test.yaml:2:39: workload.dp: '3' is no power of two"},
        {"psa: 1\nknobs: {workload.dp: {powers_of_two: [8, 4]}}\n", CS_ESCHEMA,
         "larger than the last"},
        {"psa: 1\nknobs: {workload.dp: {divisors: 0}}\n", CS_ESCHEMA, "from 1 to"},
        {"psa: 1\nknobs: {workload.dp: {range: [1, 9]}}\n", CS_ESCHEMA, "needs a step"},
        {"psa: 1\nknobs: {workload.dp: {range: [1, 9], step: 3}}\n", CS_ESCHEMA,
         "do not hit the end '9'; the last before it is 7"},
        {"psa: 1\nknobs: {workload.dp: {range: [1, 1000000], step: 1}}\n", CS_ESCHEMA,
         "more than 100000 values"},
        {"psa: 1\nknobs: {workload.sharding: {range: [1, 9], step: 1}}\n", CS_ESCHEMA, "no number"},
        {"psa: 1\nknobs: {workload.sharding: {values: [nne]}}\n", CS_ESCHEMA,
         "expected one of none, optimizer, weights; found 'nne'; did you mean 'none'?"},
        {"psa: 1\nknobs: {workload.tp_sequence: {values: [maybe]}}\n", CS_ESCHEMA, "true or false"},
        {"psa: 1\nknobs: {placement: {values: [xyz]}}\n", CS_ESCHEMA, "expected an order"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], per: dimension}}\n", CS_ESCHEMA,
         "one value, not one per dimension"},
        {"psa: 1\nknobs: {network.npus: {values: [1], per: dim}}\n", CS_ESCHEMA, "expected one of"},
        {"psa: 1\nknobs: {network.bandwidth: {values: [50]}}\n", CS_ESCHEMA, "has no unit"},
        {"psa: 1\nknobs: {network.bandwidth: {values: [50 us]}}\n", CS_ESCHEMA,
         "does not fit here"},
        {"psa: 1\nknobs: {network.bandwidth: {values: [50 GBps]}}\n", CS_ESCHEMA, "unknown unit"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], when: \"workload.tp\"}}\n", CS_ESCHEMA,
         "'when' needs a condition"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], when: \"workload.dp > 1\"}}\n", CS_ESCHEMA,
         "cannot depend on itself"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], when: \"latency > 1 s\"}}\n", CS_ESCHEMA,
         "'latency' is a result"},
        {"psa: 1\nknobs: {workload.dp: {values: [1], when: min(workload.tp, 2) > 1}}\n", CS_ESCHEMA,
         "put it in quotes"},
        {"psa: 1\nconstraints: [min(workload.tp, workload.dp) > 1]\n", CS_ESCHEMA,
         "put it in quotes"},
        {"psa: 1\nconstraints: [network.npus[1] > 1]\n", CS_EPARSE, "must be in quotes"},
        {"psa: 1\nconstraints: [workload.dp + 1]\n", CS_ESCHEMA, "a constraint is a condition"},
        {"psa: 1\nconstraints: [network.bandwidth > 50 us]\n", CS_ESCHEMA,
         "test.yaml:2:33: cannot compare a quantity in B/s and a quantity in s"},
        {"psa: 1\nconstraints: [workload.dq > 1]\n", CS_ESCHEMA,
         "test.yaml:2:15: unknown name 'workload.dq'; did you mean 'workload.dp'?"},
        {"psa: 1\nobjectives: {x: {minimise: latency}}\n", CS_ESCHEMA, "did you mean 'minimize'?"},
        {"psa: 1\nobjectives: {x: {minimize: latency, maximize: latency}}\n", CS_ESCHEMA,
         "one of them"},
        {"psa: 1\nobjectives: {x: latency}\n", CS_ESCHEMA, "expected a mapping"},
        {"psa: 1\naggregate: median\n", CS_ESCHEMA, "expected one of sum, mean, max"},
        {"psa: 1\nallow_idle: perhaps\n", CS_ESCHEMA, "expected true or false"},
        {"psa: 1\nworkloads: []\n", CS_ESCHEMA, "expected 1 to 16 workloads"},
        {"psa: 1\nworkloads: [{mode: train}]\n", CS_ESCHEMA, "the key 'model' is missing"},
        {"psa: 1\nworkloads: [{model: m, weight: 0}]\n", CS_ESCHEMA, "larger than 0"},
        {"psa: 1\nderived: {9lives: 1}\n", CS_ESCHEMA, "is no name"},
        {"psa: 1\nderived: {d: 1}\n", CS_ESCHEMA, "already means something else"},
        {"psa: 1\nderived: {x: workload.dpp}\n", CS_ESCHEMA, "did you mean 'workload.dp'?"},
        {"psa: 1\nstarts: [{workload.dpp: 3}]\n", CS_ESCHEMA,
         "test.yaml:2:25: unknown knob 'workload.dpp'; did you mean 'workload.dp'?"},
        {"psa: 1\nstarts: [{network.npus: [3]}]\n", CS_ESCHEMA, "expected 2 values, found 1"},
        {"psa: 1\nstarts: [{network.npus: [3, 4, 5]}]\n", CS_ESCHEMA, "expected 2 values, found 3"},
        {"psa: 1\nsystem: nowhere.yaml\n", CS_OK, NULL}, /* the test gives the system's text */
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = NULL;
        cs_error err = {""};
        cs_status status = fx_parse(&fx_tables, cases[i].psa, FX_SYSTEM, &schema, &err);
        if (status != cases[i].status)
            fail_msg("%s: status %d, %s", cases[i].psa, status, err.text);
        if (cases[i].message != NULL)
            fx_contains(err.text, cases[i].message);
        psa_schema_destroy(schema);
    }
}

static void test_bad_system_files(void **state)
{
    static const struct {
        const char *system, *message;
    } cases[] = {
        {"network: {npus: [2]}\n", "the key 'system' is missing"},
        {"system: 1\nnetwork: {nups: [2]}\n",
         "system:2:11: unknown field 'nups'; did you mean 'npus'?"},
        {"system: 1\nnetwrk: {npus: [2]}\n",
         "system:2:1: unknown key 'netwrk'; did you mean 'network'?"},
        {"system: 1\nname: x\n", "no value for network.npus"},
        {"system: 1\nnetwork: {npus: [2, 2], bandwidth: [5 GB/s]}\n", "expected 2 values"},
        {"system: 1\nnetwork: {npus: [2], bandwidth: [5 GB]}\n", "does not fit here"},
        {"system: 1\nnetwork: {npus: [2]}\nbaseline: {workload.dqp: 2}\n",
         "did you mean 'workload.dp'?"},
        {"system: 1\nnetwork: {npus: [2]}\nprices: cosmos\n", "expected one of cosmic, libra"},
        {"system: 1\nnetwork: {npus: [2]}\ndevice: nowhere.yaml\n", "nowhere.yaml"},
        {"system: 1\nnetwork: {npus: [1, 1, 1, 1, 1, 1, 1, 1, 1]}\n", "at most 8 dimensions"},
        {"system: 1\nnetwork: {npus: [2]}\nbaseline: {workload.dp: [2]}\n",
         "one value, not one per dimension"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = NULL;
        cs_error err = {""};
        if (fx_parse(&fx_tables, "psa: 1\n", cases[i].system, &schema, &err) == CS_OK)
            fail_msg("accepted: %s", cases[i].system);
        fx_contains(err.text, cases[i].message);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Paths are relative to the file that names them; BOM and CRLF do not matter. */
static void test_files_and_device(void **state)
{
    char folder[] = "/tmp/psa_schema_XXXXXX", path[128];
    psa_schema *schema = NULL;
    cs_error err = {""};
    fx_config config;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/device.yaml", folder);
    write_file(path,
               "device: 1\r\nname: npu\r\npeak: 10 TFLOP/s\r\ncompute: {capacity: 24 GB}\r\n");
    (void)snprintf(path, sizeof path, "%s/system.yaml", folder);
    write_file(path, "\xef\xbb\xbfsystem: 1\r\ndevice: device.yaml\r\nnetwork:\r\n  npus: [4]\r\n");
    (void)snprintf(path, sizeof path, "%s/a.yaml", folder);
    write_file(path, "\xef\xbb\xbfpsa: 1\r\nname: files\r\nsystem: system.yaml\r\n"
                     "workloads:\r\n  - {model: ../m.yaml, weight: 2.5}\r\n");
    assert_int_equal(psa_schema_load(path, &fx_tables, &schema, &err), CS_OK);
    psa_schema_baseline(schema, &config);
    assert_true(config.peak == 10e12);
    assert_string_equal(psa_schema_name(schema), "files");
    assert_int_equal(psa_schema_n_dims(schema), 1);
    assert_true(psa_schema_workload(schema, 0)->weight == 2.5);
    fx_contains(psa_schema_workload(schema, 0)->model_path, "/../m.yaml");
    assert_non_null(psa_schema_device_doc(schema));
    assert_true(psa_schema_hash(schema) != 0);
    psa_schema_destroy(schema);

    (void)snprintf(path, sizeof path, "%s/none.yaml", folder);
    assert_int_equal(psa_schema_load(path, &fx_tables, &schema, &err), CS_ENOENT);
    fx_contains(err.text, "none.yaml");
    (void)snprintf(path, sizeof path, "rm -r '%s'", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_psa_files),
        cmocka_unit_test(test_bad_system_files),
        cmocka_unit_test(test_files_and_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
