// What Python sees of the kernels of the likelihood.
#include "likelihood/boxes.hpp"
#include "likelihood/curvature.hpp"
#include "likelihood/cut.hpp"
#include "likelihood/descent.hpp"
#include "likelihood/enclosure.hpp"
#include "likelihood/loglik.hpp"
#include "likelihood/quadratic.hpp"
#include "likelihood/rounding_bounds.hpp"
#include "likelihood/search.hpp"
#include "python.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quercus {

void bind_likelihood(nb::module_ module) {
    module.attr("TO_BOUNDARY") = TO_BOUNDARY;
    module.def(
        "maximise",
        [](ConstRealMatrix P, ConstReals w) {
            auto [theta, worst] = maximise(P, w);
            return std::pair(std::move(theta), worst);
        },
        "P"_a, "w"_a, "Return the maximum evidential likelihood estimate and its KKT excess.");

    module.def("loglik", &loglik, "P"_a, "w"_a, "theta"_a, "Return the log-likelihood of a point; minus infinity where it is impossible.");
    module.def("kkt_excess", &kkt_excess, "P"_a, "w"_a, "theta"_a, "g"_a,
               "Return the KKT excess of a point of the simplex; write the gradient divided by the weight into g.");
    module.def(
        "minimise_over_cut",
        [](ConstRealMatrix P, ConstReals w, double c, ConstReals q, ConstReals a, ConstReals b, Reals theta, double enough) {
            const auto [bound, multiplier] = minimise_over_cut(P, w, c, q, a, b, theta, enough);
            return std::pair(bound, multiplier);
        },
        "P"_a, "w"_a, "c"_a, "q"_a, "a"_a, "b"_a, "theta"_a, "enough"_a,
        "Move theta to the minimiser of linear costs (or, without costs, of minus the entropy) over a level set in a box; return a "
        "proven bound and the multiplier.");

    module.def("entropy", &entropy, "theta"_a, "Return the Shannon entropy in nats.");
    module.def("to_boundary", &to_boundary, "P"_a, "w"_a, "c"_a, "inner"_a, "outer"_a, "point"_a,
               "Write the last member of a level set on the ray from a member through another point.");
    module.def("newton_stationary", &newton_stationary, "P"_a, "w"_a, "c"_a, "x"_a, "mu"_a,
               "Move x to the stationary point of the entropy near it; return the multiplier, 0 where that fails.");
    module.def("multiplier_at", &multiplier_at, "P"_a, "w"_a, "x"_a, "Return the multiplier that fits a stationary point best.");
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
    module.def("tighten", &tighten, "a"_a, "b"_a, "Shrink a box to its intersection with the simplex; false if that is empty.");
    module.def("nearest", &nearest, "a"_a, "b"_a, "x"_a, "y"_a, "Write a point of simplex and box near x into y.");

    module.def("rounding", &rounding, "l"_a, "Return a bound of the effect of rounding on a log-likelihood, relative to the weight.");
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
        "Return by how much the entropy near the maximum may be below and above that of theta.");
    module.def("box_entropy_error", &box_entropy_error, "P"_a, "w"_a, "theta"_a, "slack"_a, "widest"_a,
               "Return the same by the narrow sides of a box alone, as one number.");

    module.def("least_curvature", &least_curvature, "y"_a, "a"_a, "Return the least curvature with which an envelope touches at y.");
    module.def(
        "envelope",
        [](double f, double y, double a, double b) {
            const auto [value, slope] = envelope(f, y, a, b);
            return std::pair(value, slope);
        },
        "f"_a, "y"_a, "a"_a, "b"_a, "Return value and slope at y of the convex envelope of an entropy term with some curvature.");
    module.def("classes_by_plausibility", &classes_by_plausibility, "P"_a,
               "Return the classes of each row in falling order of plausibility.");
    module.def(
        "bound_in_box",
        [](ConstRealMatrix P, ConstReals w, Matrix<const int8_t> order, double c, ConstReals top, Reals a, Reals b, ConstReals x, double mu,
           Reals y, double enough, double limit) {
            const auto [bound, cut, at, multiplier] = bound_in_box(P, w, order, c, top, a, b, x, mu, y, enough, limit);
            return std::tuple(bound, cut, at, multiplier);
        },
        "P"_a, "w"_a, "order"_a, "c"_a, "top"_a, "a"_a, "b"_a, "x"_a, "mu"_a, "y"_a, "enough"_a, "limit"_a,
        "Return a lower bound of the entropy over a level set in a box, where and at which value to cut it, and a multiplier.");
    module.def(
        "least_entropy",
        [](ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals theta, double worst, double tolerance, Index effort) {
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
        "P"_a, "w"_a, "c"_a, "inner_c"_a, "theta"_a, "Return the greatest entropy over a level set: proven bound and reached value.");

    // For comparisons with the kernels before.
    module.def("gradient", &gradient, "P"_a, "w"_a, "theta"_a, "g"_a);
    module.def("least_linear", &least_linear, "q"_a, "a"_a, "b"_a);
    module.def("linear_bound", &linear_bound, "P"_a, "w"_a, "c"_a, "q"_a, "a"_a, "b"_a, "theta"_a, "multiplier"_a);
    module.def("entropy_bound", &entropy_bound, "P"_a, "w"_a, "c"_a, "theta"_a, "multiplier"_a);
    module.def("likelihood_bound", &likelihood_bound, "g"_a, "value"_a, "theta"_a, "a"_a, "b"_a);
    module.def("eliminate", &eliminate, "A"_a, "y"_a);
    module.def("guess_minimum", &guess_minimum, "P"_a, "w"_a, "c"_a, "theta"_a, "x"_a);
    module.def("ellipsoid", &ellipsoid, "P"_a, "w"_a, "c"_a, "theta"_a, "worst"_a, "a"_a, "b"_a, "top"_a, "A"_a);
    module.def("shrink", &shrink, "q"_a, "limit"_a, "a"_a, "b"_a);
    module.def("greatest_linear", &greatest_linear, "p"_a, "a"_a, "b"_a);
    module.def("contains", &contains, "a"_a, "b"_a, "x"_a);
    module.def("level_error", &level_error, "P"_a, "w"_a, "theta"_a, "worst"_a, "c"_a);
    module.def(
        "choose_curvature",
        [](double mu, ConstRealMatrix K, ConstReals gx, double width, ConstReals e, ConstReals a, ConstReals b, bool exact, RealMatrix M,
           Reals f, RealMatrix A) {
            const auto [tau, phi, kappa] = choose_curvature(mu, K, gx, width, e, a, b, exact, M, f, A);
            return std::tuple(tau, phi, kappa);
        });
    module.def("wanted_curvature", &wanted_curvature);
    module.def("cut_below", &cut_below);
    module.def("cut_at", &cut_at);
    module.def("widest_loss", &widest_loss);
    module.def("expand", &expand);
    module.def("minimise_quadratic", &minimise_quadratic);
    module.def("next_multiplier", &next_multiplier);
    module.def("discard", &discard);
    module.def("has_vertex", &has_vertex);
    module.def("near_ends", &near_ends, "P"_a, "w"_a, "c"_a, "shortfall"_a, "theta"_a, "ends"_a);
}

}  // namespace quercus
