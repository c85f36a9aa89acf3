// Least entropy over the likelihood cut of three classes by a shrinking polygon (theory §2.10).
//
// The cut is a convex set of the plane, so tangents of `l` bound a polygon around it. Entropy is concave, so over the
// polygon it is least at a corner, which gives a lower bound. The segment from the maximiser to this corner leaves the
// cut at a point whose entropy is reached; the tangent there cuts the corner off. If the least entropy lies on a side
// of the simplex, the corner on this side converges to it as in Newton's method; if it lies on the smooth part of the
// border, about every second cut quarters the gap.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "descent.hpp"
#include "loglik.hpp"
#include "rounding_bounds.hpp"
#include "vertex.hpp"

namespace quercus {

constexpr int POLYGON_CUTS = 120;  // maximum number of corners that are cut off

struct Corner {
    std::array<double, 3> t;
    double entropy;
};

/// Clip a convex polygon, whose `corners` are in order, to `g . t >= least`.
///
/// Returns false, with nothing changed, if nothing or everything would be cut off, or if rounding leaves it unclear
/// which corners would be.
inline bool clip(std::vector<Corner>& corners, ConstReals g, double least) {
    const Index count = length(corners);
    std::vector<double> over(count);
    for (Index k = 0; k < count; ++k) {
        const auto& t = corners[k].t;
        over[k] = g[0] * t[0] + g[1] * t[1] + g[2] * t[2] - least;
    }
    Index first = -1, gone = 0;  // the first corner to remove, whose predecessor stays
    for (Index k = 0; k < count; ++k) {
        if (over[k] >= 0.0) continue;
        ++gone;
        if (over[(k + count - 1) % count] >= 0.0) first = k;
    }
    if (first < 0) return false;
    for (Index k = 0; k < gone; ++k)
        if (!(over[(first + k) % count] < 0.0)) return false;
    const Index end = first + gone;  // the first one that stays
    const auto between = [&](Index stay, Index out) {
        const auto &kept = corners[stay].t, &lost = corners[out].t;
        const double part = over[stay] / (over[stay] - over[out]);
        Corner corner;
        for (Index j = 0; j < 3; ++j) corner.t[j] = std::max(kept[j] + part * (lost[j] - kept[j]), 0.0);
        corner.entropy = entropy(corner.t);
        return corner;
    };
    std::vector<Corner> left;
    left.reserve(count - gone + 2);
    for (Index k = 0; k < count - gone; ++k) left.push_back(corners[(end + k) % count]);
    left.push_back(between((first + count - 1) % count, first));
    left.push_back(between(end % count, (end - 1) % count));
    corners.swap(left);
    return true;
}

/// Return the least entropy (nats) over the cut of three classes.
///
/// Parameters
/// ----------
/// P, w : (n, 3), (n,); `P @ theta` is 1 in every row
/// theta : (3,) a maximiser
/// outer, inner : level of the cut for which the bound is valid, and of the one that contains the reached point
/// tolerance : sufficient distance in nats between bound and reached entropy
inline EntropyEnd least_in_polygon(ConstRealMatrix P, ConstReals w, ConstReals theta, double outer, double inner,
                                   double tolerance) {
    const double W = sum_of(w);
    const double dust = 2.0 * W * (rounding(3) + plain_sums(P.rows, 3));  // of a tangent
    std::vector<Corner> corners{{{1.0, 0.0, 0.0}, 0.0}, {{0.0, 1.0, 0.0}, 0.0}, {{0.0, 0.0, 1.0}, 0.0}};
    std::array<double, 3> y, g;
    const auto lower = [](const Corner& a, const Corner& b) { return a.entropy < b.entropy; };
    double reached = INFINITE;
    for (int cuts = 0; cuts < POLYGON_CUTS; ++cuts) {
        const Corner& least = *std::min_element(corners.begin(), corners.end(), lower);
        if (least.entropy >= reached - tolerance) break;
        if (loglik(P, w, least.t) >= inner) return {least.entropy, least.entropy};
        to_boundary(P, w, inner, theta, least.t, y);
        reached = std::min(reached, entropy(y));
        const double value = gradient(P, w, y, g);
        if (!clip(corners, g, outer - value + W - dust)) break;  // l(t) <= l(y) + g . t - W
    }
    return {std::min(std::min_element(corners.begin(), corners.end(), lower)->entropy, reached), reached};
}

}  // namespace quercus
