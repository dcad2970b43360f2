/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Placement orders, footprints of groups, single messages, boundaries, unequal all-to-alls. */
#include "tests/sim_network_test.h"

static void test_orders_are_read_and_written(void **state)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"tp sp ep dp pp", "tp sp ep dp pp"},
        {"  dp tp\tsp pp ", "ep dp tp sp pp"}, /* a missing ep stands before dp */
        {"pp dp ep sp tp", "pp dp ep sp tp"},
    };
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"tp sp dp", "placement: axis pp is missing"},
        {"tp tp sp dp pp", "placement: axis tp is given twice"},
        {"tp spp dp pp",
         "placement: \"spp\" is no axis (tp, sp, ep, dp, pp); did you mean \"sp\"?"},
    };
    char text[64];
    int32_t order;
    cs_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sim_order_parse(cases[i].text, &order, &err), CS_OK);
        assert_string_equal(sim_order_format(order, text), cases[i].expect);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(sim_order_parse(wrong[i].text, &order, &err), CS_EINVAL);
        assert_string_equal(err.text, wrong[i].message);
    }
}

/* [8,16,4,4], placement "dp tp sp pp" with dp 8, tp 8, sp 8, pp 4: dp fills dimension 1, tp half of
 * dimension 2, sp the other half (2, stride 8) and dimension 3, pp dimension 4. */
static void test_axes_fall_on_dimensions(void **state)
{
    sim_network net = {.n_dims = 4};
    static const int64_t npus[] = {8, 16, 4, 4};
    sim_mesh mesh = {{8, 8, 1, 8, 4}};
    sim_footprint f;
    int32_t order;

    (void)state;
    for (size_t d = 0; d < 4; d++)
        net.dim[d].n = npus[d];
    assert_int_equal(sim_order_parse("dp tp sp pp", &order, NULL), CS_OK);
    assert_int_equal(sim_footprint_make(&net, &mesh, order, WL_GROUP_DATA, &f, NULL), CS_OK);
    assert_true(f.n == 8 && f.n_spans == 1 && f.span[0].dim == 0 && f.span[0].stride == 1);
    assert_int_equal(sim_footprint_make(&net, &mesh, order, WL_GROUP(WL_TP), &f, NULL), CS_OK);
    assert_true(f.n_spans == 1 && f.span[0].dim == 1 && f.span[0].n == 8 && f.span[0].stride == 1);
    assert_int_equal(sim_footprint_make(&net, &mesh, order, WL_GROUP(WL_SP), &f, NULL), CS_OK);
    assert_true(f.n_spans == 2 && f.span[0].dim == 1 && f.span[0].n == 2 && f.span[0].stride == 8);
    assert_true(f.span[1].dim == 2 && f.span[1].n == 4 && f.span[1].stride == 1);
    /* tp and sp are neighbours: their group has one span of all 16 of dimension 2 */
    assert_int_equal(sim_footprint_make(&net, &mesh, order,
                                        (wl_group)(WL_GROUP(WL_TP) | WL_GROUP(WL_SP)), &f, NULL),
                     CS_OK);
    assert_true(f.n == 64 && f.n_spans == 2 && f.span[0].n == 16 && f.span[0].stride == 1);
}

/* Ids that a footprint says its first group has, sorted as they are generated. */
static int64_t footprint_id(const sim_network *net, const sim_footprint *f, int64_t member)
{
    int64_t id = 0;

    for (size_t i = 0; i < f->n_spans; i++) {
        int64_t step = 1;
        for (size_t d = 0; d < f->span[i].dim; d++)
            step *= net->dim[d].n;
        id += member % f->span[i].n * f->span[i].stride * step;
        member /= f->span[i].n;
    }
    return id;
}

/* Rank offset of a member by the mesh alone. */
static int64_t mesh_id(const sim_mesh *mesh, sim_order order, wl_group axes, int64_t member)
{
    int64_t id = 0, stride = 1;

    for (int i = 0; i < WL_N_AXES; i++) {
        int axis = order >> (4 * i) & 15;
        if ((axes >> axis & 1) != 0) {
            id += member % mesh->size[axis] * stride;
            member /= mesh->size[axis];
        }
        stride *= mesh->size[axis];
    }
    return id;
}

/* True when adding an offset to `base` moves every coordinate as adding it to 0 does: the group of
 * `base` is then a shifted copy of the first one. */
static bool adds_without_carry(const sim_network *net, int64_t base, int64_t offset)
{
    for (size_t d = 0; d < net->n_dims; d++) {
        if (base % net->dim[d].n + offset % net->dim[d].n >= net->dim[d].n)
            return false;
        base /= net->dim[d].n;
        offset /= net->dim[d].n;
    }
    return true;
}

/* A span must stay inside its block: members of siblings interleave, blocks do not. */
static bool is_product(const sim_network *net, const sim_mesh *mesh, sim_order order, wl_group axes,
                       int64_t n)
{
    int64_t used = 1;

    for (int a = 0; a < WL_N_AXES; a++)
        used *= mesh->size[a];
    for (int64_t base = 0; base < used; base++) {
        bool first = true;
        int64_t stride = 1;
        for (int i = 0; i < WL_N_AXES; i++) {
            int axis = order >> (4 * i) & 15;
            if ((axes >> axis & 1) != 0 && base / stride % mesh->size[axis] != 0)
                first = false;
            stride *= mesh->size[axis];
        }
        for (int64_t m = 0; first && m < n; m++)
            if (!adds_without_carry(net, base, mesh_id(mesh, order, axes, m)))
                return false;
    }
    return true;
}

/* Random meshes on random networks: a product footprint names exactly the members of the mesh, for
 * every sibling; and what is no product for some sibling is never called one. */
static void test_footprints_equal_enumeration(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8};
    cs_rng *rng = cs_rng_create(1, 2, 3);
    int products = 0, routed = 0;

    (void)state;
    for (int trial = 0; trial < 4000; trial++) {
        sim_network net = {.n_dims = 1 + cs_rng_below(rng, 4)};
        sim_mesh mesh;
        sim_footprint f;
        int64_t npus = 1, used = 1;
        int32_t order;
        wl_group axes = (wl_group)(1 + cs_rng_below(rng, 31));
        for (size_t d = 0; d < net.n_dims; d++)
            npus *= net.dim[d].n = sizes[cs_rng_below(rng, 6)];
        for (int a = 0; a < WL_N_AXES; a++) {
            int64_t size = sizes[cs_rng_below(rng, 6)];
            mesh.size[a] = used * size <= npus ? size : 1;
            used *= mesh.size[a];
        }
        assert_int_equal(
            sim_order_parse(trial % 2 ? "tp sp ep dp pp" : "dp tp pp ep sp", &order, NULL), CS_OK);
        assert_int_equal(sim_footprint_make(&net, &mesh, order, axes, &f, NULL), CS_OK);
        if (f.routed) {
            routed++;
            continue;
        }
        products++;
        assert_true(is_product(&net, &mesh, order, axes, f.n));
        for (int64_t m = 0; m < f.n; m++)
            assert_int_equal(footprint_id(&net, &f, m), mesh_id(&mesh, order, axes, m));
    }
    assert_true(products > 500 && routed > 500);
    cs_rng_destroy(rng);
}

static void test_meshes_that_do_not_fit_are_refused(void **state)
{
    sim_network net = {.n_dims = 2, .dim = {{.n = 4}, {.n = 4}}};
    sim_mesh large = {{8, 4, 1, 1, 1}}, empty = {{0, 1, 1, 1, 1}};
    sim_footprint f;
    int32_t order;
    cs_error err;

    (void)state;
    assert_int_equal(sim_order_parse("tp sp dp pp", &order, NULL), CS_OK);
    assert_int_equal(sim_footprint_make(&net, &large, order, WL_GROUP(WL_TP), &f, &err), CS_EINVAL);
    assert_string_equal(err.text, "the degrees multiply to 32 NPUs, the network has 16");
    assert_int_equal(sim_footprint_make(&net, &empty, order, WL_GROUP(WL_TP), &f, &err), CS_EINVAL);
    assert_string_equal(err.text, "placement: axis tp has 0 NPUs");
}

/* On a ring of 8 and a switch of 4 (100 GB/s, 500 ns) NPU 0 -> 9 (1,1): one hop over 50 GB/s, then
 * up and down over 100; 0 -> 4: the opposite node, half of it each way over 4 hops. */
static void test_messages_go_dimension_by_dimension(void **state)
{
    sim_network net = {.n_dims = 2};
    sim_phases phases;
    const sim_phase *phase = phases.phase;
    cs_error err;

    (void)state;
    net.dim[0] = make_dim(SIM_RING, 0, 8, 100, 500);
    net.dim[1] = make_dim(SIM_SWITCH, 0, 4, 100, 500);
    assert_int_equal(sim_message_phases(&net, 0, 9, 1e6, &phases, &err), CS_OK);
    assert_true(phases.n == 2 && phase[0].dim == 0 && phase[1].dim == 1);
    assert_close(phase[0].seconds, 20.5e-6, 1e-12);
    assert_close(phase[1].seconds, 11e-6, 1e-12);
    assert_int_equal(sim_message_phases(&net, 0, 4, 1e6, &phases, &err), CS_OK);
    assert_close(phase[0].seconds, 12e-6, 1e-12);
    assert_int_equal(sim_message_phases(&net, 5, 5, 1e6, &phases, &err), CS_OK);
    assert_int_equal(phases.n, 0);
    assert_int_equal(sim_message_phases(&net, 0, 32, 1e6, &phases, &err), CS_EINVAL);
    assert_string_equal(err.text, "a message of 1e+06 bytes from NPU 0 to 32 of 32");
}

/* tp 2, pp 8 on [4,4] rings of 100 GB/s: stages are 2 apart on dimension 1 and carry into dimension
 * 2. On dimension 1 every NPU sends to the opposite one, half each way: a link carries one message
 * in all over 50 GB/s; on dimension 2 all go one hop up. With one stage there is nothing. */
static void test_boundaries_carry_over_dimensions(void **state)
{
    sim_network net = {.n_dims = 2};
    sim_mesh mesh = {{2, 1, 1, 1, 8}};
    sim_route_cache *cache = sim_route_cache_create(0);
    sim_phases phases;
    const sim_phase *phase = phases.phase;
    int32_t order;

    (void)state;
    net.dim[0] = make_dim(SIM_RING, 0, 4, 100, 500);
    net.dim[1] = make_dim(SIM_RING, 0, 4, 100, 500);
    assert_int_equal(sim_order_parse("tp sp dp pp", &order, NULL), CS_OK);
    for (int backward = 0; backward < 2; backward++) {
        const sim_boundary what = {&mesh, order, 1e6, backward != 0};
        assert_int_equal(sim_boundary_phases(&net, &what, cache, &phases, NULL), CS_OK);
        assert_true(phases.n == 2 && phase[0].dim == 0 && phase[1].dim == 1);
        assert_close(phase[0].seconds, 20.5e-6, 1e-12);
        assert_close(phase[1].seconds, 20.5e-6, 1e-12);
    }
    mesh.size[WL_TP] = 16;
    mesh.size[WL_PP] = 1;
    const sim_boundary none = {&mesh, order, 1e6, false};
    assert_int_equal(sim_boundary_phases(&net, &none, cache, &phases, NULL), CS_OK);
    assert_int_equal(phases.n, 0);
    sim_route_cache_destroy(cache);
}

/* tp 4, pp 6 on [6,4]: stages are 4 apart and cross columns now and then; no product.  A boundary
 * still has a phase for both dimensions, each at least a hop and a message long. */
static void test_boundaries_of_stages_that_are_no_product(void **state)
{
    sim_network net = {.n_dims = 2};
    sim_mesh mesh = {{4, 1, 1, 1, 6}};
    sim_route_cache *cache = sim_route_cache_create(0);
    sim_phases phases;
    int32_t order;

    (void)state;
    net.dim[0] = make_dim(SIM_RING, 0, 6, 100, 500);
    net.dim[1] = make_dim(SIM_RING, 0, 4, 100, 500);
    assert_int_equal(sim_order_parse("tp sp dp pp", &order, NULL), CS_OK);
    for (int backward = 0; backward < 2; backward++) {
        const sim_boundary what = {&mesh, order, 1e6, backward != 0};
        assert_int_equal(sim_boundary_phases(&net, &what, cache, &phases, NULL), CS_OK);
        assert_int_equal(phases.n, 2);
        for (size_t i = 0; i < 2; i++)
            assert_true(phases.phase[i].seconds >= 20.5e-6 && phases.phase[i].dim == i);
    }
    sim_route_cache_destroy(cache);
}

/* Equal sizes are the direct all-to-all of each dimension; one message of 1 GB on a switch is 2 L +
 * 10 ms; two receivers of one sender share its link up. */
static void test_unequal_all_to_all(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 1};
    double bytes[64] = {0};
    sim_phases phases;
    const sim_phase *phase = phases.phase;
    sim_footprint group;

    (void)state;
    net.dim[0] = make_dim(SIM_SWITCH, SIM_ALGO_DIRECT, 4, 100, 500);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_DIRECT, 2, 100, 500);
    group = sim_footprint_whole(&net);
    bytes[0 * 8 + 1] = 1e9;
    assert_int_equal(sim_all_to_all_v_phases(&net, &group, bytes, &phases, NULL), CS_OK);
    assert_int_equal(phases.n, 2);
    assert_close(phase[0].seconds, 10.001e-3, 1e-12);
    assert_true(phase[1].seconds == 0 && phase[1].bytes == 0);
    bytes[0 * 8 + 2] = 2e9;
    assert_int_equal(sim_all_to_all_v_phases(&net, &group, bytes, &phases, NULL), CS_OK);
    assert_close(phase[0].seconds, 30.001e-3, 1e-12);
    assert_close(phase[0].bytes, 3e9, 1e-12);
    for (size_t i = 0; i < 64; i++)
        bytes[i] = 1e6;
    assert_int_equal(sim_all_to_all_v_phases(&net, &group, bytes, &phases, NULL), CS_OK);
    assert_close(phase[0].seconds + phase[1].seconds, seconds_of(&net, &group, WL_ALL_TO_ALL, 8e6),
                 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_read_and_written),
        cmocka_unit_test(test_axes_fall_on_dimensions),
        cmocka_unit_test(test_footprints_equal_enumeration),
        cmocka_unit_test(test_meshes_that_do_not_fit_are_refused),
        cmocka_unit_test(test_messages_go_dimension_by_dimension),
        cmocka_unit_test(test_boundaries_carry_over_dimensions),
        cmocka_unit_test(test_boundaries_of_stages_that_are_no_product),
        cmocka_unit_test(test_unequal_all_to_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
