#include "base/ridge.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

// Solves A X = B in place: A [n][n] symmetric and positive definite, lower triangle; B [n][m] becomes X.
void solve_cholesky(std::vector<double> & a, std::vector<double> & b, size_t n, size_t m) {
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            a[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / a[j * n + j];
        }
    }
    for (size_t i = 0; i < n; i++) { // forward
        for (size_t k = 0; k < i; k++) {
            for (size_t c = 0; c < m; c++) {
                b[i * m + c] -= a[i * n + k] * b[k * m + c];
            }
        }
        for (size_t c = 0; c < m; c++) {
            b[i * m + c] /= a[i * n + i];
        }
    }
    for (size_t i = n; i-- > 0;) { // backward
        for (size_t k = i + 1; k < n; k++) {
            for (size_t c = 0; c < m; c++) {
                b[i * m + c] -= a[k * n + i] * b[k * m + c];
            }
        }
        for (size_t c = 0; c < m; c++) {
            b[i * m + c] /= a[i * n + i];
        }
    }
}

struct Moments {
    std::vector<double> mean, deviation;
};

Moments moments(const std::vector<float> & rows, const std::vector<float> & importance, size_t width) {
    Moments result{ std::vector<double>(width), std::vector<double>(width) };
    double  total = 0;
    for (size_t r = 0; r < importance.size(); r++) {
        total += importance[r];
        for (size_t i = 0; i < width; i++) {
            result.mean[i] += importance[r] * rows[r * width + i];
        }
    }
    for (double & mean : result.mean) {
        mean /= total;
    }
    for (size_t r = 0; r < importance.size(); r++) {
        for (size_t i = 0; i < width; i++) {
            const double off = rows[r * width + i] - result.mean[i];
            result.deviation[i] += importance[r] * off * off;
        }
    }
    for (double & deviation : result.deviation) {
        deviation = std::sqrt(deviation / total);
    }
    return result;
}

} // namespace

LinearMap fit_ridge(const std::vector<float> & x, const std::vector<float> & y, const std::vector<float> & importance,
                    size_t n_in, size_t n_out, double penalty) {
    const Moments       of_x = moments(x, importance, n_in);
    const Moments       of_y = moments(y, importance, n_out);
    std::vector<double> a(n_in * n_in), b(n_in * n_out), row(n_in), out(n_out), scale(n_in);
    for (size_t i = 0; i < n_in; i++) {
        scale[i] = of_x.deviation[i] > 0 ? 1 / of_x.deviation[i] : 0;
    }
    double total = 0;
    for (size_t r = 0; r < importance.size(); r++) {
        const double weight = importance[r];
        total += weight;
        for (size_t i = 0; i < n_in; i++) {
            row[i] = (x[r * n_in + i] - of_x.mean[i]) * scale[i];
        }
        for (size_t c = 0; c < n_out; c++) {
            out[c] = y[r * n_out + c] - of_y.mean[c];
        }
        for (size_t i = 0; i < n_in; i++) {
            const double factor = weight * row[i];
            double *     to_a   = &a[i * n_in];
            double *     to_b   = &b[i * n_out];
            for (size_t k = 0; k <= i; k++) {
                to_a[k] += factor * row[k];
            }
            for (size_t c = 0; c < n_out; c++) {
                to_b[c] += factor * out[c];
            }
        }
    }
    for (size_t i = 0; i < n_in; i++) {
        a[i * n_in + i] += penalty * total;
    }
    solve_cholesky(a, b, n_in, n_out);

    LinearMap map{ std::vector<float>(n_out * n_in), std::vector<float>(n_out) };
    for (size_t c = 0; c < n_out; c++) {
        double bias = of_y.mean[c];
        for (size_t i = 0; i < n_in; i++) {
            const double w           = b[i * n_out + c] * scale[i];
            map.weight[c * n_in + i] = float(w);
            bias -= w * of_x.mean[i];
        }
        map.bias[c] = float(bias);
    }
    return map;
}

} // namespace penelope
