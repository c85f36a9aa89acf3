// Python bindings of the kernels of the forest of many memories, of queries, and of mixtures.
#include "forest/codes.hpp"
#include "forest/covering.hpp"
#include "forest/densities.hpp"
#include "forest/growing.hpp"
#include "forest/members.hpp"
#include "forest/mixture.hpp"
#include "forest/overlap.hpp"
#include "forest/routing.hpp"
#include "forest/served.hpp"
#include "python.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quercus {

template <class T>
using Array = nb::typed<nb::object, Matrix<T>>;

using Numbers = nb::typed<nb::list, double>;

/// Return a new array, and its memory.
template <class T>
static std::pair<Array<T>, Matrix<T>> empty_array(Index rows, Index columns) {
    const Index shape[2] = {rows, columns};
    void* data;
    nb::object array = nb::steal(new_array(kind_of<T>(), 2, shape, &data));
    if (!array) nb::raise_python_error();
    return {Array<T>(std::move(array)), {static_cast<T*>(data), rows, columns}};
}

/// Copy memory into a new array.
template <class T>
static Array<T> array_of(const T* values, Index rows, Index columns) {
    auto [array, target] = empty_array<T>(rows, columns);
    std::copy_n(values, rows * columns, target.data);
    return array;
}

/// Bind the functions of covering, for distances of one type.
template <class Distance>
static void bind_covering(nb::module_& module) {
    using namespace forest;
    module.def("covering_gains", &covering_gains<Distance>, "far"_a, "near"_a,
               "Return how far each candidate would reduce the distances of rows from the nearest known row (n,).");
    module.def(
        "best_candidate",
        [](Matrix<const Distance> far, ConstInts near, ConstInts gains, ConstInts lines, ConstReals worths,
           Bools counted, double cover, double tie) {
            BestCandidate best = best_candidate<Distance>(far, near, gains, lines, worths, counted, cover, tie);
            return std::tuple(best.candidate, best.nearer, std::move(best.score));
        },
        "far"_a, "near"_a, "gains"_a, "lines"_a, "worths"_a, "counted"_a, "cover"_a, "tie"_a,
        "Return the candidate with the greatest score, the number of counted rows that are nearer to it than to any "
        "known row, and all scores (n,).");
    module.def("take_candidate", &take_candidate<Distance>, "far"_a, "near"_a, "gains"_a, "candidate"_a,
               "Update `near` (m,) and `gains` (n,) for a candidate that is queried.");
}

void bind_forest(nb::module_ module) {
    using namespace forest;
    module.attr("ATTEMPTS") = ATTEMPTS;
    module.attr("COLUMN_ROUNDING") = COLUMN_ROUNDING;
    module.attr("DENSITY_STEPS") = DENSITY_STEPS;
    module.attr("DISTANCE_UNIT") = DISTANCE_UNIT;
    module.attr("EPSILON") = EPSILON;
    module.attr("FARTHEST") = FARTHEST;
    module.attr("FLOOR_SHARE") = FLOOR_SHARE;
    module.attr("FREE_SHARE") = FREE_SHARE;
    module.attr("LARGEST_NUMBER") = LARGEST_NUMBER;
    module.attr("LITTLE") = LITTLE;
    module.attr("LOG_SQRT_2PI") = LOG_SQRT_2PI;
    module.attr("TINY") = TINY;

    module.def("derived_key", &derived_key, "key"_a, "number"_a, "Return the key that a key and a number determine.");
    module.def("number_between", &number_between, "key"_a, "low"_a, "high"_a,
               "Return the number in [low, high) that a key determines.");
    module.def("member_key", &member_key, "seed"_a, "member"_a, "Return the key of a member's root.");
    module.def("names_key", &names_key, "key"_a, "test"_a,
               "Return the key that decides which names go left by a test, given the node's key.");
    module.def("goes_left", &goes_left, "code"_a, "named"_a, "test"_a, "key"_a,
               "Return whether a code goes left by a test.");
    module.def(
        "estimate_node",
        [](Index runs, Kinds kind, ConstInts count, ConstRealMatrix contours, Kinds sole, Reals theta,
           RealMatrix share) {
            ByClass by_class(runs, contours.columns);
            return estimate_node(runs, kind, count, contours, sole, theta, share, by_class);
        },
        "runs"_a, "kind"_a, "count"_a, "contours"_a, "sole"_a, "theta"_a, "share"_a,
        "Write the estimate of a node, and the shares of the classes in each run unless all labels are precise.");
    module.def(
        "grow",
        [](Codes codes, Bools named, ConstInts varying, Kinds kinds, Labels labels, ConstRealMatrix contours,
           Kinds sole, ConstInts rank, Vector<const uint64_t> keys, Matrix<const int32_t> nodes, ConstRows rows,
           ConstRealMatrix opinions, Matrix<const int64_t> counts, ConstRows come, ConstRows go, Bools gone) {
            const GrownTrees grown = grow(codes, named, varying, kinds, labels, contours, sole, rank, keys, nodes, rows,
                                          opinions, counts, come, go, gone);
            const Index held = (length(rows) / length(keys) + length(come) - length(go)) * length(keys);
            const int32_t* mine = grown.rows.get();
            return std::tuple(array_of(grown.nodes.get(), grown.node_count, FIELDS),
                              std::vector<int32_t>(mine, mine + held),
                              array_of(grown.opinions.get(), grown.opinion_count, 3 * contours.columns), grown.counts);
        },
        "codes"_a, "named"_a, "varying"_a, "kinds"_a, "labels"_a, "contours"_a, "sole"_a, "rank"_a, "keys"_a, "nodes"_a,
        "rows"_a, "opinions"_a, "counts"_a, "come"_a, "go"_a, "gone"_a,
        "Grow the trees of a memory from their earlier state; return nodes, rows, opinions (opinions, 3 l), counts.");
    module.def(
        "add_opinions", &add_opinions, "codes"_a, "named"_a, "keys"_a, "nodes"_a, "opinions"_a, "counts"_a, "weights"_a,
        "level"_a, "predicted"_a,
        "Add the trees' predictions of rows to `predicted`: (m, 3 l), (m, l), or one tree after another (trees m, l).");
    module.def(
        "overlaps",
        [](Matrix<const int32_t> nodes, ConstRealMatrix opinions, Matrix<const int64_t> counts) {
            std::vector<double> found(nodes.rows);
            write_overlaps(nodes, opinions, counts, found);
            return found;
        },
        "nodes"_a, "opinions"_a, "counts"_a, "Return the overlap of each leaf of trees in bits, (nodes,).");
    module.def("add_of_leaves", &add_of_leaves, "codes"_a, "named"_a, "keys"_a, "nodes"_a, "counts"_a, "weights"_a,
               "of_nodes"_a, "sums"_a,
               "Add the weighted values of the leaves in which rows end, `of_nodes` (nodes,), to `sums` (m,).");
    module.def("add_densities", &add_densities, "values"_a, "means"_a, "deviations"_a, "logs"_a,
               "Add the log densities of rows, without missing values, to `logs` (m, l).");
    module.def(
        "fit_densities",
        [](ConstRealMatrix values, ConstInts rows, ConstInts columns, Kinds klass, ConstRealMatrix contours,
           double free) {
            Densities found = fit_densities(values, rows, columns, klass, contours, free);
            return std::pair(std::move(found.means), std::move(found.deviations));
        },
        "values"_a, "rows"_a, "columns"_a, "klass"_a, "contours"_a, "free"_a,
        "Return means and deviations (k, l) of numeric attributes in each class.");
    module.def(
        "fit_mixture",
        [](ConstRealMatrix x, ConstRealMatrix w, ConstReals centre, ConstReals floor, ConstRealMatrix log_pl,
           ConstRealMatrix plain, ConstRealMatrix beyond, double epsilon, int64_t max_steps) {
            Fits found = fit_mixture(x, w, centre, floor, log_pl, plain, beyond, epsilon, max_steps);
            return std::tuple(std::move(found.proportions), std::move(found.means), std::move(found.deviations),
                              std::move(found.likelihood), std::move(found.steps));
        },
        "x"_a, "w"_a, "centre"_a, "floor"_a, "log_pl"_a, "plain"_a, "beyond"_a, "epsilon"_a, "max_steps"_a,
        "Return proportions, means and deviations (K, l), log-likelihoods (K,) and steps made (K,) of mixtures.");
    module.def(
        "codes_of",
        [](ConstRealMatrix values, Bools named, ConstReals cuts, ConstInts cut_counts) {
            auto [array, codes] = empty_array<uint16_t>(values.rows, values.columns);
            write_codes(values, named, cuts, cut_counts, codes);
            return array;
        },
        "values"_a, "named"_a, "cuts"_a, "cut_counts"_a,
        "Return the codes (m, K) of values (m, K), NaN where missing.");
    module.def("name_masks", &name_masks, "nodes"_a, "roots"_a, "keys"_a,
               "Return for each node the key that decides which names go left (nodes,).");
    module.def("check_served_trees", &check_served_trees, "nodes"_a, "node_counts"_a, "opinion_counts"_a, "opinions"_a,
               "K"_a, "l"_a, "Raise `ValueError` unless every path of each tree ends in a leaf with an opinion.");
    module.def(
        "bayes_estimates",
        [](Bools named, ConstRealMatrix priors, ConstRealMatrix log_priors, ConstRealMatrix means,
           ConstRealMatrix deviations, ConstRealMatrix log_deviations, ConstRealMatrix frequencies,
           ConstInts name_counts, ConstRealMatrix values) {
            const ServedBayes bayes{priors,      log_priors,  means, deviations, log_deviations,
                                    frequencies, name_counts, {},    {}};
            auto [array, theta] = empty_array<double>(priors.rows * values.rows, priors.columns);
            write_bayes_estimates(bayes, values, named, theta);
            return array;
        },
        "named"_a, "priors"_a, "log_priors"_a, "means"_a, "deviations"_a, "log_deviations"_a, "frequencies"_a,
        "name_counts"_a, "values"_a, "Return the probabilities (B m, l) of rows by each naive-Bayes member.");
    module.def(
        "served_predictions",
        [](Bools named, Matrix<const int32_t> nodes, ConstInts roots, Vector<const uint64_t> masks,
           ConstRealMatrix opinions, ConstInts first_opinions, ConstReals weights, ConstReals doubts,
           ConstRealMatrix priors, ConstRealMatrix log_priors, ConstRealMatrix means, ConstRealMatrix deviations,
           ConstRealMatrix log_deviations, ConstRealMatrix frequencies, ConstInts name_counts, ConstReals depths,
           ConstReals shares, ConstReals cuts, ConstInts cut_counts, ConstRealMatrix values, double reliable,
           double tie) {
            const Index m = values.rows, l = priors.columns;
            std::vector<int64_t> klass(m);
            auto [theta_array, theta] = empty_array<double>(m, l);
            auto [belief_array, belief] = empty_array<double>(m, l);
            auto [plausibility_array, plausibility] = empty_array<double>(m, l);
            served_predictions(
                {named, nodes, roots, masks, opinions, first_opinions, weights, doubts},
                {priors, log_priors, means, deviations, log_deviations, frequencies, name_counts, depths, shares}, cuts,
                cut_counts, values, reliable, tie, klass, theta, belief, plausibility);
            return std::tuple(std::move(klass), theta_array, belief_array, plausibility_array);
        },
        "named"_a, "nodes"_a, "roots"_a, "masks"_a, "opinions"_a, "first_opinions"_a, "weights"_a, "doubts"_a,
        "priors"_a, "log_priors"_a, "means"_a, "deviations"_a, "log_deviations"_a, "frequencies"_a, "name_counts"_a,
        "depths"_a, "shares"_a, "cuts"_a, "cut_counts"_a, "values"_a, "reliable"_a, "tie"_a,
        "Return classes (m,), probabilities, beliefs and plausibilities (m, l) of rows by a served forest.");
    module.def(
        "served_prediction",
        [](Bools named, Matrix<const int32_t> nodes, ConstInts roots, Vector<const uint64_t> masks,
           ConstRealMatrix opinions, ConstInts first_opinions, ConstReals weights, ConstReals doubts,
           ConstRealMatrix priors, ConstRealMatrix log_priors, ConstRealMatrix means, ConstRealMatrix deviations,
           ConstRealMatrix log_deviations, ConstRealMatrix frequencies, ConstInts name_counts, ConstReals depths,
           ConstReals shares, ConstReals cuts, ConstInts cut_counts, Numbers row, double reliable, double tie) {
            const Index l = priors.columns, K = static_cast<Index>(row.size());
            OwnedMatrix<double> values(1, K), opinion(3, l);
            for (Index k = 0; k < K; ++k) values(0, k) = nb::cast<double>(row[k]);
            int64_t klass = 0;
            const auto part_of = [&](Index part) { return RealMatrix{opinion[part].data(), 1, l}; };
            served_predictions(
                {named, nodes, roots, masks, opinions, first_opinions, weights, doubts},
                {priors, log_priors, means, deviations, log_deviations, frequencies, name_counts, depths, shares}, cuts,
                cut_counts, values, reliable, tie, {&klass, 1}, part_of(0), part_of(1), part_of(2));
            Numbers theta, belief, plausibility;
            for (double value : opinion[0]) theta.append(value);
            for (double value : opinion[1]) belief.append(value);
            for (double value : opinion[2]) plausibility.append(value);
            return std::tuple(klass, theta, belief, plausibility);
        },
        "named"_a, "nodes"_a, "roots"_a, "masks"_a, "opinions"_a, "first_opinions"_a, "weights"_a, "doubts"_a,
        "priors"_a, "log_priors"_a, "means"_a, "deviations"_a, "log_deviations"_a, "frequencies"_a, "name_counts"_a,
        "depths"_a, "shares"_a, "cuts"_a, "cut_counts"_a, "row"_a, "reliable"_a, "tie"_a,
        "Return class, probabilities, beliefs and plausibilities of one row, as lists, faster than arrays of one row.");
    module.def(
        "distances",
        [](Matrix<const int16_t> rows, Matrix<const int16_t> others, ConstInts ordered) {
            auto [array, far] = empty_array<int64_t>(rows.rows, others.rows);
            distances(rows, others, ordered, far);
            return array;
        },
        "rows"_a, "others"_a, "ordered"_a, "Return the distances (n, m) of rows (n, K) from others (m, K).");
    module.def("nearest_distances", &nearest_distances, "rows"_a, "others"_a, "ordered"_a,
               "Return the distance (n,) of each row from the nearest of `others`.");
    bind_covering<uint16_t>(module);
    bind_covering<int32_t>(module);
    bind_covering<int64_t>(module);
    module.def("estimate_shares", &estimate_shares, "rows"_a, "weights"_a, "labels"_a, "share"_a,
               "Return the class probabilities of rows by E2M (l,), and write each row's shares (n, l).");
    module.def(
        "grow_member",
        [](Matrix<const int16_t> codes, ConstRealMatrix labels, ConstReals weights, ConstInts ordered,
           ConstInts arities, int64_t tries, int64_t seed) {
            Member grown = grow_member(codes, labels, weights, ordered, arities, tries, seed);
            return std::tuple(std::move(grown.attribute), std::move(grown.code), std::move(grown.first),
                              std::move(grown.theta));
        },
        "codes"_a, "labels"_a, "weights"_a, "ordered"_a, "arities"_a, "tries"_a, "seed"_a,
        "Grow one tree of a committee; return attribute, code, first child and estimate of each node.");
    module.def("mean_probabilities", &mean_probabilities, "codes"_a, "labels"_a, "weights"_a, "ordered"_a, "arities"_a,
               "tries"_a, "pool"_a, "known"_a, "Return the members' mean estimate of the class of each row of a pool.");
}

}  // namespace quercus
