// A lower bound of the entropy over the part of a level set in a box (theory §2.6).
//
// Notation as in `quadratic.hpp`. The bounds come from a sequence of quadratics, each around the minimiser of the one
// before. Each also removes the parts of the box that cannot contain a lower entropy than the one already reached.
//
// If the box contains a local minimum `x` and its multiplier is known, the bound should be exact. Two things may
// prevent this. First, across the boundary of the level set, along `g(x)`, the entropy may have more curvature than the
// likelihood, far more if a class has little probability. Then slabs `lo <= s <= hi` of the box are bounded one by one
// (`bound_in_slabs`); the first is as thin as the third inequality needs. Second, a side of the box may reach so far
// below `x_j` that its envelope touches `h` at `x_j` only with twice the curvature of `h`. Then the side is cut there
// (`cut_below`).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "curvature.hpp"
#include "cut.hpp"
#include "enclosure.hpp"
#include "loglik.hpp"
#include "quadratic.hpp"

namespace quercus {

constexpr int ROUNDS = 4;  // quadratics tried in a box, at successive minimisers and multipliers
constexpr int SLABS = 10;  // maximum number of slabs tried
constexpr int FAILURES =
    3;  // maximum number of slabs that are halved: boxes that are proved in the end rarely need more
constexpr double SHRUNK = 0.15;  // if a side lost this part of its width, another round is worth its time

/// Return the classes of each row (n, l) in falling order of plausibility.
inline OwnedMatrix<int8_t> classes_by_plausibility(ConstRealMatrix P) {
    OwnedMatrix<int8_t> order(P.rows, P.columns);
    for (Index i = 0; i < P.rows; ++i) {
        for (Index j = 0; j < P.columns; ++j) {
            Index r = j;
            for (; r > 0 && P(i, order(i, r - 1)) < P(i, j); --r) order(i, r) = order(i, r - 1);
            order(i, r) = static_cast<int8_t>(j);
        }
    }
    return order;
}

struct Ranges {
    double origin;  // `g(x) . x`
    double s_lo, s_hi;
};

/// Write upper bounds of `P t` in the box into `V`; return the range of `s`.
inline Ranges ranges(ConstRealMatrix P, Matrix<const int8_t> order, double c, double at_x, ConstReals x, ConstReals gx,
                     ConstReals a, ConstReals b, ConstReals top, Reals V) {
    const Index n = P.rows, l = P.columns;
    double left = 1.0;
    for (Index j = 0; j < l; ++j) left -= a[j];
    for (Index i = 0; i < n; ++i) {  // a knapsack problem, the most plausible first
        double room = left, total = 0.0;
        for (Index j = 0; j < l; ++j) total += P(i, j) * a[j];
        for (Index r = 0; r < l; ++r) {
            if (room <= 0.0) break;
            const Index j = order(i, r);
            const double amount = std::min(room, b[j] - a[j]);
            total += P(i, j) * amount;
            room -= amount;
        }
        V[i] = std::min(top[i], total);
    }
    double origin = 0.0;
    for (Index j = 0; j < l; ++j) origin += gx[j] * x[j];
    return {origin, std::max(c - at_x, least_linear(gx, a, b) - origin), greatest_linear(gx, a, b) - origin};
}

/// Shrink the box by two inequalities that hold where the entropy is below `limit`; false if nothing is left.
///
/// The tangent of the quadratic, `above + q . (t - z) <= limit`, and that of the likelihood, `g . (t - y) >= -spare`
/// with `spare = l(y) - c`. `q` is overwritten.
inline bool discard(Reals q, double above, ConstReals g, double spare, ConstReals y, ConstReals z, double limit,
                    Reals a, Reals b) {
    for (Index j = 0; j < length(y); ++j) {
        above -= q[j] * z[j];
        spare -= g[j] * y[j];
    }
    if (!shrink(q, limit - above, a, b)) return false;
    for (Index j = 0; j < length(y); ++j) q[j] = -g[j];
    return shrink(q, spare, a, b) && tighten(a, b);
}

/// Return a lower bound of the entropy in a box that contains the local minimum `x`, slab by slab `lo <= s <= hi`.
///
/// Across the boundary of the level set the entropy may have more curvature than the likelihood; in a thin slab the
/// third inequality makes up for that. Returns minus infinity if this proves less than `enough`. `Q` is `P` `padded`;
/// on entry `scratch` is as `bound_at` left it at `x`.
inline double bound_in_slabs(ConstRealMatrix Q, ConstReals w, double c, ConstReals V, ConstReals a, ConstReals b,
                             ConstReals x, ConstReals gx, double origin, double s_lo, double s_hi, double m,
                             double enough, Workspace& scratch) {
    auto& [K, M, A, e, f, g, r, z, q] = scratch;
    const Index l = length(x);
    double width = s_hi - s_lo;
    bool convex = false;
    for (int halving = 0; halving < 4 && !convex; ++halving) {
        width *= 0.5;
        convex = choose_curvature(m, K, gx, width, e, a, b, true, M, f, A).tau == 0.0;
    }
    if (!convex) return -INFINITE;
    double lo = s_lo, low = INFINITE;
    std::vector<double> y(x.begin(), x.end()), slab_a(l), slab_b(l);
    bool exact = true;
    int failures = 0;
    for (int slab = 0; slab < SLABS; ++slab) {
        const double hi = std::min(lo + width, s_hi);
        copy(a, slab_a);
        copy(b, slab_b);
        for (Index j = 0; j < l; ++j) {
            q[j] = gx[j];
            r[j] = -gx[j];
        }
        const bool met = shrink(q, hi + origin, slab_a, slab_b) && shrink(r, -lo - origin, slab_a, slab_b);
        if (met && tighten(slab_a, slab_b)) {
            if (exact && !contains(slab_a, slab_b, x)) return -INFINITE;
            if (!exact) {
                copy(y, z);
                nearest(slab_a, slab_b, z, y);
            }
            double best = -INFINITE;
            for (int round = 0; round < (exact ? 1 : ROUNDS - 1); ++round) {
                const QuadraticBound here =
                    bound_at(Q, w, c, V, slab_a, slab_b, gx, origin, lo, hi, y, m, exact, scratch);
                best = std::max(best, here.bound);
                if (best >= enough || exact || here.value == -INFINITE) break;
                m = next_multiplier(A, r, g, K, c - here.value, m, slab_a, slab_b, y, z, q);
                nearest(slab_a, slab_b, z, y);
            }
            if (best < enough) {
                if (exact || ++failures > FAILURES) return -INFINITE;
                width = 0.5 * (hi - lo);
                continue;
            }
            low = std::min(low, best);
        }
        if (hi >= s_hi) return low;
        lo = hi;
        width *= 2.0;
        exact = false;
    }
    return -INFINITE;
}

struct BoxBound {
    double bound;       // plus infinity if nothing is left of the box
    Index cut;          // coordinate at which to cut the box next
    double at;          // value at which to cut it, if it contains `x`
    double multiplier;  // multiplier of the best guess of the minimiser
};

/// Return a lower bound (nats) of the entropy over the level set within a box, if below `limit`.
///
/// - `P`, `w`, `c`: the level set
/// - `order`: (n, l) classes of each row of `P` in falling order (`classes_by_plausibility`)
/// - `top`: (n,) upper bounds of `P t` on it
/// - `a`, `b`: the box; shrunk to the part that can contain an entropy of at most `limit`
/// - `x`, `mu`: (l,) a local minimum and its multiplier; if the box contains `x`, the bound is intended to be exact
/// - `y`: (l,) a point of simplex and box to start from; receives the best guess of the minimiser
/// - `enough`: a larger bound has no further value
inline BoxBound bound_in_box(ConstRealMatrix P, ConstReals w, Matrix<const int8_t> order, double c, ConstReals top,
                             Reals a, Reals b, ConstReals x, double mu, Reals y, double enough, double limit) {
    const Index n = P.rows, l = P.columns;
    const bool own = contains(a, b, x);
    std::vector<double> best_y(y.begin(), y.end());
    const std::vector<double> first_y = best_y;
    if (!own) x = first_y;  // as origin of s, a point of this box is better
    std::vector<double> gx(l), V(n), width(l);
    const double at_x = gradient(P, w, x, gx);
    if (!(at_x > -INFINITE)) return {-INFINITE, 0, 0.5 * (a[0] + b[0]), mu};
    const OwnedMatrix<double> Q = padded(P);
    Workspace scratch(l);
    auto& [K, M, A, e, f, g, r, z, q] = scratch;
    double best = -INFINITE, m = mu, best_m = mu;
    Index cut = 0;
    double at = 0.0;
    bool exact = own, fresh = true;
    Ranges range{0.0, 0.0, 0.0};
    int left = 2 * ROUNDS;
    while (left > 0) {
        --left;
        if (exact) {
            copy(x, y);
            m = mu;
        }
        if (fresh) {
            range = ranges(P, order, c, at_x, x, gx, a, b, top, V);
            for (Index j = 0; j < l; ++j) width[j] = b[j] - a[j];
            fresh = false;
        }
        const auto [origin, s_lo, s_hi] = range;
        const auto [bound, above, value] = bound_at(Q, w, c, V, a, b, gx, origin, s_lo, s_hi, y, m, exact, scratch);
        if (value == -INFINITE) break;
        if (!own) cut = widest_loss(e, a, b);
        if (exact && bound == -INFINITE) {  // not convex with the curvature that exactness needs: give up exactness
            best = bound_in_slabs(Q, w, c, V, a, b, x, gx, origin, s_lo, s_hi, m, enough, scratch);
            if (best >= enough) break;
            expand(Q, w, y, V, g, K);
            wanted_curvature(y, a, b, m, g, exact, e);
            cut = widest_loss(e, a, b);
            at = cut_at(a[cut], b[cut], y[cut]);
            for (Index j = 0; j < l; ++j) r[j] = y[j] > 0.0 ? std::min(e[j], 1.02 / y[j]) : e[j];
            // slabs may be thin
            const double tau = choose_curvature(m, K, gx, 0.1 * (s_hi - s_lo), r, a, b, true, M, f, A).tau;
            if (tau == 0.0) {
                const Index lower = cut_below(M, e, y, a, b, f, A, q);
                if (lower >= 0) {
                    cut = lower;
                    at = a[cut] + CUT_BELOW * (y[cut] - a[cut]);
                }
            }
            exact = false;
            left = std::min(left, ROUNDS - 2);
            continue;
        }
        const double gain = bound - best;
        if (bound > best) {
            best = bound;
            best_m = m;
            copy(z, best_y);
        }
        if (best >= enough) break;
        if (!discard(q, above, g, value - c, y, z, limit, a, b)) return {INFINITE, 0, at, m};
        for (Index j = 0; j < l; ++j)
            if (b[j] - a[j] < (1.0 - SHRUNK) * width[j]) fresh = true;
        if (fresh && own && contains(a, b, x)) {
            exact = true;
            continue;
        }
        if (!fresh && gain < 0.1 * (enough - best) && left < ROUNDS - 2) break;
        m = next_multiplier(A, r, g, K, c - value, m, a, b, y, z, q);
        nearest(a, b, z, y);
    }
    nearest(a, b, best_y, y);
    return {best, cut, at, best_m};
}

}  // namespace quercus
