// A normal density of each numeric attribute in each class, fitted by E2M (theory §6, §10.3).
//
// Rows with a precise label need no E step: their moments are computed once. Only the shares of the other rows change
// from step to step. Sums follow the order of the log.
#pragma once

#include "gaussian.hpp"
#include "nodes.hpp"

namespace quercus::forest {

constexpr int DENSITY_STEPS = 100;  // maximum number of steps of E2M

struct ColumnSummary {
    double origin;           // the first known number
    double mean, deviation;  // of all known numbers, the mean less the origin
    double largest;          // magnitude of a known number
};

/// Copy a column of numbers, less its origin; write count, mean and sum of squares about it of each class, (3, l).
///
/// `klass` (n,) is the class of a row, -1 if it is uncertain. The origin is the first known number; all computations on
/// the column subtract it. Otherwise sums of numbers far from zero would lose the digits that distinguish rows, and in
/// a column of equal numbers rounding would make the classes differ.
inline ColumnSummary read_numbers(ConstRealMatrix values, ConstInts rows, Index k, Reals x, Kinds klass,
                                  RealMatrix moments) {
    double origin = 0.0, known = 0.0, total = 0.0, largest = 0.0;
    std::fill_n(moments.data, 3 * moments.columns, 0.0);
    for (Index i = 0; i < length(rows); ++i) {
        double number = values(rows[i], k);
        if (std::isnan(number)) {
            x[i] = number;
            continue;
        }
        number = std::min(std::max(number, -LARGEST_NUMBER), LARGEST_NUMBER);
        if (known == 0.0) origin = number;
        x[i] = number - origin;
        known += 1.0;
        total += x[i];
        largest = std::max(largest, std::abs(number));
        const int32_t c = klass[i];
        if (c >= 0) {
            moments(0, c) += 1.0;
            moments(1, c) += x[i];
        }
    }
    if (known == 0.0) return {0.0, 0.0, 0.0, 0.0};
    for (Index c = 0; c < moments.columns; ++c)
        if (moments(0, c) > 0.0) moments(1, c) /= moments(0, c);
    const double mean = total / known;
    double square = 0.0;
    for (Index i = 0; i < length(x); ++i) {
        if (std::isnan(x[i])) continue;
        square += (x[i] - mean) * (x[i] - mean);
        const int32_t c = klass[i];
        if (c >= 0) moments(2, c) += (x[i] - moments(1, c)) * (x[i] - moments(1, c));
    }
    return {origin, mean, std::sqrt(square / known), largest};
}

/// Write the most likely proportions, means and deviations (3, l), given the shares t (l, u) of the `u` uncertain rows.
///
/// A class without a share keeps its mean and deviation.
inline void maximise_density(ConstReals x, Index u, ConstRealMatrix t, ConstRealMatrix moments, double floor,
                             RealMatrix parameters) {
    const Index l = moments.columns;
    double total = 0.0;
    for (Index c = 0; c < l; ++c) {
        double weight = moments(0, c), mean = moments(0, c) * moments(1, c);
        for (Index i = 0; i < u; ++i) {
            weight += t(c, i);
            mean += t(c, i) * x[i];
        }
        total += weight;
        parameters(0, c) = weight;
        if (!(weight > 0.0)) continue;
        mean /= weight;
        double spread = moments(2, c) + moments(0, c) * ((moments(1, c) - mean) * (moments(1, c) - mean));
        for (Index i = 0; i < u; ++i) spread += t(c, i) * ((x[i] - mean) * (x[i] - mean));
        parameters(1, c) = mean;
        parameters(2, c) = std::max(std::sqrt(spread / weight), floor);
    }
    for (Index c = 0; c < l; ++c) parameters(0, c) = total > 0.0 ? parameters(0, c) / total : 1.0 / l;
}

/// Write the shares t (l, u) of `u` uncertain rows with contours (u, l); return the log-likelihood of all rows.
inline double share_by_density(ConstReals x, Index u, ConstRealMatrix contours, ConstRealMatrix moments,
                               ConstRealMatrix parameters, RealMatrix t) {
    constexpr double INFINITE = std::numeric_limits<double>::infinity();
    const Index l = moments.columns;
    std::vector<double> logs(l);
    double likelihood = 0.0;
    for (Index c = 0; c < l; ++c) {
        const double deviation = parameters(2, c), beside = moments(1, c) - parameters(1, c);
        logs[c] = parameters(0, c) > 0.0 ? std::log(parameters(0, c)) : -INFINITE;
        logs[c] -= std::log(deviation) + LOG_SQRT_2PI;
        if (moments(0, c) > 0.0) {
            const double spread = moments(2, c) + moments(0, c) * (beside * beside);
            likelihood += moments(0, c) * logs[c] - 0.5 * std::min(spread / (deviation * deviation), FARTHEST);
        }
    }
    for (Index i = 0; i < u; ++i) {
        double top = -INFINITE;
        for (Index c = 0; c < l; ++c) {
            t(c, i) = -INFINITE;
            if (contours(i, c) > 0.0) {
                const double z = (x[i] - parameters(1, c)) / parameters(2, c);
                t(c, i) = std::log(contours(i, c)) + logs[c] - 0.5 * std::min(z * z, FARTHEST);
            }
            top = std::max(top, t(c, i));
        }
        double total = 0.0;
        for (Index c = 0; c < l; ++c) {
            t(c, i) = top > -INFINITE ? std::exp(t(c, i) - top) : contours(i, c);
            total += t(c, i);
        }
        total = std::max(total, TINY);
        for (Index c = 0; c < l; ++c) t(c, i) /= total;
        likelihood += std::max(top, -FARTHEST) + std::log(total);
    }
    return likelihood;
}

/// Write shares (l, u) in proportion to contours (u, l), or to their excess over the least plausibility if `beyond`.
inline void share_by_contour(ConstRealMatrix given, Index u, bool beyond, RealMatrix t) {
    for (Index i = 0; i < u; ++i) {
        double least = std::numeric_limits<double>::infinity(), total = 0.0;
        for (Index c = 0; c < given.columns; ++c) least = std::min(least, given(i, c));
        if (!beyond) least = 0.0;
        for (Index c = 0; c < given.columns; ++c) total += given(i, c) - least;
        for (Index c = 0; c < given.columns; ++c) t(c, i) = (given(i, c) - least) / std::max(total, TINY);
    }
}

struct Densities {
    OwnedMatrix<double> means, deviations;
};

/// Return means and deviations (k, l) that no step improves by `EPSILON`, after at most `DENSITY_STEPS` steps.
///
/// Parameters
/// ----------
/// values : (all rows, K), NaN where missing
/// rows : (n,) numbers of the rows that count
/// columns : (k,) the numeric columns
/// klass : (n,) the class of a row, -1 if it is uncertain
/// contours : (uncertain rows, l), in the order of `rows`
/// free : mean over the rows of ``min pl / max pl``, see `quercus.trees.learners.mixture.column_floor`
inline Densities fit_densities(ConstRealMatrix values, ConstInts rows, ConstInts columns, Kinds klass,
                               ConstRealMatrix contours, double free) {
    const Index l = contours.columns;
    Densities found{{length(columns), l}, {length(columns), l}};
    OwnedMatrix<double> moments(3, l), parameters(3, l);
    std::vector<double> x(rows.size()), proportions(l);
    std::vector<Index> doubtful;
    for (Index i = 0; i < length(klass); ++i)
        if (klass[i] < 0) doubtful.push_back(i);
    const Index uncertain = length(doubtful);
    std::vector<double> mine(uncertain);
    OwnedMatrix<double> given(uncertain, l), t(l, uncertain);
    for (Index k = 0; k < length(columns); ++k) {
        const auto [origin, mean, deviation, largest] = read_numbers(values, rows, columns[k], x, klass, moments);
        const double least = std::max(COLUMN_ROUNDING * (largest > 0.0 ? largest : 1.0), TINY);
        const double floor = std::max((FLOOR_SHARE + FREE_SHARE * free) * deviation, least);
        Index u = 0;
        for (Index i = 0; i < uncertain; ++i) {
            if (std::isnan(x[doubtful[i]])) continue;
            mine[u] = x[doubtful[i]];
            for (Index c = 0; c < l; ++c) given(u, c) = contours(i, c);
            ++u;
        }
        for (Index c = 0; c < l; ++c) {  // a class without a known number keeps the density of all rows
            parameters(1, c) = mean;
            parameters(2, c) = std::max(deviation, floor);
        }
        share_by_contour(given, u, false, t);
        maximise_density(mine, u, t, moments, floor, parameters);
        std::copy_n(parameters[0].begin(), l, proportions.begin());
        share_by_contour(given, u, true, t);
        maximise_density(mine, u, t, moments, floor, parameters);
        if (u > 0) {
            std::copy_n(proportions.begin(), l, parameters[0].begin());
            double now = share_by_density(mine, u, given, moments, parameters, t);
            for (int step = 0; step < DENSITY_STEPS; ++step) {
                maximise_density(mine, u, t, moments, floor, parameters);
                const double before = now;
                now = share_by_density(mine, u, given, moments, parameters, t);
                if (now - before < EPSILON) break;
            }
        }
        for (Index c = 0; c < l; ++c) {
            found.means(k, c) = origin + parameters(1, c);
            found.deviations(k, c) = parameters(2, c);
        }
    }
    return found;
}

}  // namespace quercus::forest
