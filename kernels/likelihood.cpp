// Python bindings of the kernels of the likelihood.
#include "likelihood/boxes.hpp"
#include "likelihood/cells.hpp"
#include "likelihood/class_bounds.hpp"
#include "likelihood/class_extent.hpp"
#include "likelihood/curvature.hpp"
#include "likelihood/cut.hpp"
#include "likelihood/descent.hpp"
#include "likelihood/enclosure.hpp"
#include "likelihood/leave_one_out.hpp"
#include "likelihood/loglik.hpp"
#include "likelihood/maxima.hpp"
#include "likelihood/precise.hpp"
#include "likelihood/problem.hpp"
#include "likelihood/quadratic.hpp"
#include "likelihood/reduction.hpp"
#include "likelihood/rounding_bounds.hpp"
#include "likelihood/search.hpp"
#include "likelihood/sparse.hpp"
#include "python.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quercus {

/// Bind the kernels that take cells. Their counts are whole numbers, or weights.
template <class Count>
static void bind_cells(nb::module_& module) {
    module.def("solve_precise", &solve_precise<Count>, "start"_a, "ids"_a, "counts"_a, "klass"_a, "l"_a, "alpha"_a,
               "keys"_a, "values"_a, "kinds"_a, "ends"_a,
               "Write kinds (m,), and lower end, upper end and gap in bits (3, m) of all cells but the general ones; "
               "return the number of a malformed cell, or -1.");
    module.def(
        "estimate_precise", &estimate_precise<Count>, "start"_a, "ids"_a, "counts"_a, "klass"_a, "kinds"_a, "theta"_a,
        "unique"_a,
        "Write kinds, theta (m, l) and uniqueness (m,) of all cells but the general ones; return the number of a "
        "malformed cell, or -1.");
    module.def("bound_precise", &bound_precise<Count>, "start"_a, "ids"_a, "counts"_a, "klass"_a, "alpha"_a, "kinds"_a,
               "lower"_a, "upper"_a,
               "Write kinds and class bounds (m, l) of all cells but the general ones; return the number of a "
               "malformed cell, or -1.");
    module.def("merge_cells", &merge_cells<Count>, "start"_a, "ids"_a, "counts"_a, "wanted"_a, "column"_a,
               "out_start"_a, "out_columns"_a, "out_counts"_a,
               "Rewrite cells over the table of informative contours, each contour once, numbers ascending.");
    module.def("bound_maxima", &bound_maxima<Count>, "start"_a, "ids"_a, "counts"_a, "contours"_a, "theta"_a,
               "reached"_a, "bound"_a, "classes"_a, "weights"_a,
               "Write the fields of LikelihoodMaxima, (m,) each, from estimates (m, l).");
}

void bind_likelihood(nb::module_ module) {
    module.attr("TO_BOUNDARY") = TO_BOUNDARY;
    module.attr("OCCURS") = OCCURS;
    module.attr("CONSTANT") = int{CONSTANT};
    module.attr("OTHER") = int{OTHER};
    module.attr("GENERAL") = int{GENERAL};

    module.def(
        "maximise",
        [](ConstRealMatrix P, ConstReals w) {
            auto [theta, worst] = maximise(P, w);
            return std::pair(std::move(theta), worst);
        },
        "P"_a, "w"_a, "Return the maximum evidential likelihood estimate and its KKT excess.");

    module.def("loglik", &loglik, "P"_a, "w"_a, "theta"_a,
               "Return the log-likelihood of a point; minus infinity where it is impossible.");
    module.def("kkt_excess", &kkt_excess, "P"_a, "w"_a, "theta"_a, "g"_a,
               "Return the KKT excess of a point of the simplex; write the gradient divided by the weight into g.");
    module.def(
        "minimise_over_cut",
        [](ConstRealMatrix P, ConstReals w, double c, ConstReals q, ConstReals a, ConstReals b, Reals theta,
           double enough) {
            const auto [bound, multiplier] = minimise_over_cut(P, w, c, q, a, b, theta, enough);
            return std::pair(bound, multiplier);
        },
        "P"_a, "w"_a, "c"_a, "q"_a, "a"_a, "b"_a, "theta"_a, "enough"_a,
        "Move theta to the minimiser of linear costs (or, without costs, of minus the entropy) over a level set in a "
        "box; return a proven bound and the multiplier.");

    module.def("entropy", &entropy, "theta"_a, "Return the Shannon entropy in nats.");
    module.def("to_boundary", &to_boundary, "P"_a, "w"_a, "c"_a, "inner"_a, "outer"_a, "point"_a,
               "Write the last point of a level set on the ray from one of its points through another point.");
    module.def("newton_stationary", &newton_stationary, "P"_a, "w"_a, "c"_a, "x"_a, "mu"_a,
               "Move x to the stationary point of the entropy near it; return the multiplier, 0 where that fails.");
    module.def("multiplier_at", &multiplier_at, "P"_a, "w"_a, "x"_a,
               "Return the multiplier that best fits a stationary point.");
    module.def(
        "descend",
        [](ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals centre, Reals theta) {
            const auto [value, multiplier] = descend(P, w, c, inner_c, centre, theta);
            return std::pair(value, multiplier);
        },
        "P"_a, "w"_a, "c"_a, "inner_c"_a, "centre"_a, "theta"_a,
        "Walk theta down to a local minimum of the entropy over a level set; return its value and multiplier.");

    module.def("largest_move", &largest_move, "p"_a, "x"_a, "Return how far above 1 a row's probability may be.");
    module.def("outer_box", &outer_box, "P"_a, "w"_a, "c"_a, "theta"_a, "worst"_a, "a"_a, "b"_a, "top"_a,
               "Write a box that contains a level set, and upper bounds of its rows' probabilities.");
    module.def("tighten", &tighten, "a"_a, "b"_a,
               "Shrink a box to its intersection with the simplex; false if that is empty.");
    module.def("nearest", &nearest, "a"_a, "b"_a, "x"_a, "y"_a, "Write a point of simplex and box near x into y.");

    module.def("rounding", &rounding, "l"_a,
               "Return a bound of the effect of rounding on a log-likelihood, relative to the weight.");
    module.def("plain_sums", &plain_sums, "n"_a, "l"_a,
               "Return a bound of the relative effect of rounding on a plainly summed gradient.");
    module.def("sure_excess", &sure_excess, "P"_a, "w"_a, "theta"_a, "worst"_a, "c"_a,
               "Return an upper bound of the true KKT excess of a point, given the computed one.");
    module.def(
        "entropy_error",
        [](ConstRealMatrix P, ConstReals w, ConstReals theta, double slack) {
            const auto [down, up] = entropy_error(P, w, theta, slack);
            return std::pair(down, up);
        },
        "P"_a, "w"_a, "theta"_a, "slack"_a,
        "Return by how much the entropy near the maximum of the likelihood may be below and above that of theta.");
    module.def("box_entropy_error", &box_entropy_error, "P"_a, "w"_a, "theta"_a, "slack"_a, "widest"_a,
               "Return by how much the entropy near the maximum may differ from that of theta, judged by the sides of "
               "a box that are narrower than widest.");

    module.def("least_curvature", &least_curvature, "y"_a, "a"_a,
               "Return the least curvature with which an envelope touches at y.");
    module.def(
        "envelope",
        [](double f, double y, double a, double b) {
            const auto [value, slope] = envelope(f, y, a, b);
            return std::pair(value, slope);
        },
        "f"_a, "y"_a, "a"_a, "b"_a,
        "Return value and slope at y of the convex envelope of an entropy term to which curvature f is added.");
    module.def("classes_by_plausibility", &classes_by_plausibility, "P"_a,
               "Return the classes of each row in falling order of plausibility.");
    module.def(
        "bound_in_box",
        [](ConstRealMatrix P, ConstReals w, Matrix<const int8_t> order, double c, ConstReals top, Reals a, Reals b,
           ConstReals x, double mu, Reals y, double enough, double limit) {
            const auto [bound, cut, at, multiplier] = bound_in_box(P, w, order, c, top, a, b, x, mu, y, enough, limit);
            return std::tuple(bound, cut, at, multiplier);
        },
        "P"_a, "w"_a, "order"_a, "c"_a, "top"_a, "a"_a, "b"_a, "x"_a, "mu"_a, "y"_a, "enough"_a, "limit"_a,
        "Return a lower bound of the entropy over a level set in a box, the coordinate and the value at which to cut "
        "the box, and a multiplier.");
    module.def(
        "least_entropy",
        [](ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals theta, double worst, double tolerance,
           Index effort) {
            const auto [bound, reached, examined] = least_entropy(P, w, c, inner_c, theta, worst, tolerance, effort);
            return std::tuple(bound, reached, examined);
        },
        "P"_a, "w"_a, "c"_a, "inner_c"_a, "theta"_a, "worst"_a, "tolerance"_a, "effort"_a,
        "Return the least entropy over a level set: proven bound, reached value, boxes examined.");
    module.def(
        "greatest_entropy",
        [](ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals theta) {
            const auto [bound, reached] = greatest_entropy(P, w, c, inner_c, theta);
            return std::pair(bound, reached);
        },
        "P"_a, "w"_a, "c"_a, "inner_c"_a, "theta"_a,
        "Return the greatest entropy over a level set: proven bound and reached value.");

    module.def(
        "least_entropy_of_counts",
        [](ConstReals n, double c, double inner_c, double tolerance, int most) {
            const auto [bound, reached] = least_entropy_of_counts(n, c, inner_c, tolerance, most);
            return std::pair(bound, reached);
        },
        "n"_a, "c"_a, "inner_c"_a, "tolerance"_a, "most"_a,
        "Return proven bound and reached value (nats) of the least entropy over the cut of precise labels.");
    module.def(
        "greatest_entropy_of_counts",
        [](ConstReals n, Index free, double c, double inner_c, double tolerance, int most) {
            const auto [bound, reached] = greatest_entropy_of_counts(n, free, c, inner_c, tolerance, most);
            return std::pair(bound, reached);
        },
        "n"_a, "free"_a, "c"_a, "inner_c"_a, "tolerance"_a, "most"_a,
        "Return proven bound and reached value (nats) of the greatest entropy over the cut of precise labels.");

    bind_cells<int64_t>(module);
    bind_cells<double>(module);

    module.attr("SOLVED") = int{SOLVED};
    module.attr("SEARCH") = int{SEARCH};
    module.attr("MAXIMISERS") = int{MAXIMISERS};
    module.attr("FEW_BOXES") = FEW_BOXES;
    module.attr("TOLERANCE") = TOLERANCE;
    module.def(
        "estimate_counts",
        [](ConstRealMatrix table, Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
           Vector<const int64_t> wanted,
           RealMatrix found) { estimate_counts({table, start, columns, counts}, wanted, found); },
        "table"_a, "start"_a, "columns"_a, "counts"_a, "wanted"_a, "found"_a,
        "Write the maximisers of problems, their KKT excess, and 1 where a maximiser is certainly unique (m, l + 2).");
    module.def(
        "solve_counts",
        [](ConstRealMatrix table, Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
           Vector<const int64_t> wanted, ConstRealMatrix estimates, double alpha, bool tight, RealMatrix ends,
           Vector<int8_t> states) {
            solve_counts({table, start, columns, counts}, wanted, estimates, alpha, tight, ends, states);
        },
        "table"_a, "start"_a, "columns"_a, "counts"_a, "wanted"_a, "estimates"_a, "alpha"_a, "tight"_a, "ends"_a,
        "states"_a,
        "Write lower bound, reached least, reached greatest entropy and upper bound (nats) of problems (m, 4), and "
        "states (m,).");
    module.def(
        "search_counts",
        [](ConstRealMatrix table, Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
           Vector<const int64_t> wanted, ConstRealMatrix estimates, double alpha, Index effort, RealMatrix ends) {
            return search_counts({table, start, columns, counts}, wanted, estimates, alpha, effort, ends);
        },
        "table"_a, "start"_a, "columns"_a, "counts"_a, "wanted"_a, "estimates"_a, "alpha"_a, "effort"_a, "ends"_a,
        "Write lower bound and reached least entropy of problems that solve_counts left to a search; return the boxes "
        "examined.");
    module.def(
        "bound_counts",
        [](ConstRealMatrix table, Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
           Vector<const int64_t> wanted, ConstRealMatrix estimates, double alpha,
           RealMatrix bounds) { bound_counts({table, start, columns, counts}, wanted, estimates, alpha, bounds); },
        "table"_a, "start"_a, "columns"_a, "counts"_a, "wanted"_a, "estimates"_a, "alpha"_a, "bounds"_a,
        "Write proven lower and upper bounds (m, 2 l) of the class probabilities over the likelihood cuts of "
        "problems.");

    module.def("rescale_rows", &rescale_rows, "P"_a, "theta"_a, "Return the rows divided by p . theta.");
    module.def(
        "take_problem",
        [](ConstRealMatrix table, Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
           Index problem) {
            auto [P, w] = take_problem({table, start, columns, counts}, problem);
            return std::pair(std::move(P), std::move(w));
        },
        "table"_a, "start"_a, "columns"_a, "counts"_a, "problem"_a,
        "Return the contours of one problem (n, l) and their counts (n,).");

    module.def("quadratic_start", &quadratic_start, "P"_a, "w"_a, "c"_a, "theta"_a, "j"_a, "sign"_a, "y"_a,
               "Write into y where sign theta_j is least in the quadratic model of a cut; return the multiplier, 0 if "
               "there is none.");
    module.def(
        "newton", &newton, "P"_a, "w"_a, "c"_a, "j"_a, "sign"_a, "y"_a, "mu"_a,
        "Return a proven lower bound of sign theta_j over a cut, from a start with its multiplier, or minus infinity.");
    module.def("least_at_vertex", &least_at_vertex, "P"_a, "w"_a, "c"_a, "a"_a, "j"_a, "sign"_a, "g"_a,
               "Return a proven lower bound of sign theta_j over a cut whose maximiser is the vertex of class a, or "
               "minus infinity.");
    module.def("least_of_class", &least_of_class, "P"_a, "w"_a, "c"_a, "theta"_a, "j"_a, "sign"_a, "y"_a,
               "Return a proven lower bound of sign theta_j over a cut.");

    module.def(
        "highest_without", &highest_without, "P"_a, "w"_a, "theta"_a, "worst"_a, "tops"_a,
        "Write upper bounds of the greatest log-likelihood without one row of each contour; infinity if unknown.");
    module.def("known_ends", &known_ends, "P"_a, "w"_a, "c"_a, "theta"_a, "tops"_a, "low"_a, "high"_a,
               "Write those ends of the entropy without one row of each contour that are known without search.");
    module.def("move_into_cut", &move_into_cut, "P"_a, "w"_a, "c"_a, "x"_a, "mu"_a, "tops"_a, "highest"_a, "ends"_a,
               "Move a stationary point into the cut without one row of each contour; keep the greatest or least "
               "entropy reached.");

    module.def("enter_cells", &enter_cells, "start"_a, "columns"_a, "counts"_a, "slots"_a, "hashes"_a, "pool_start"_a,
               "pool_columns"_a, "pool_counts"_a, "size"_a, "entries"_a,
               "Find or add cells in a hash table; write their numbers to entries, return the new size.");
    module.def("place_hashes", &place_hashes, "hashes"_a, "slots"_a,
               "Fill the free slots of a larger hash table with the cells that have these hashes.");
    module.def("reduce_rows", &reduce_rows, "P"_a, "w"_a, "first"_a, "out_P"_a, "out_w"_a, "out_start"_a, "empty"_a,
               "Reduce many problems to their distinct informative contours; P is overwritten.");
}

}  // namespace quercus
