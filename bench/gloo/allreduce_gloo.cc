/*
 * allreduce_gloo.cc - Gloo's AllReduce of floats over TCP, measured as 'longhaul collective' does: a barrier
 * before each operation, the mean of the ranks' times; mean, p50 and p99 as JSON at rank 0. RANK and
 * WORLD_SIZE as of 'longhaul run'.
 *
 * usage: bench_allreduce_gloo ADDRESS STORE-FOLDER BYTES ITERATIONS WARMUP
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

template <typename T>
static void add(void *out, const void *a, const void *b, size_t count)
{
    gloo::sum<T>(static_cast<T *>(out), static_cast<const T *>(a), static_cast<const T *>(b), count);
}

template <typename T>
static void allreduce(const std::shared_ptr<gloo::Context> &context, std::vector<T> &in, std::vector<T> &out,
                      uint32_t tag)
{
    gloo::AllreduceOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setReduceFunction(add<T>);
    options.setTag(tag);
    gloo::allreduce(options);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    int rank = std::atoi(std::getenv("RANK")), ranks = std::atoi(std::getenv("WORLD_SIZE"));
    size_t count = std::strtoul(argv[3], nullptr, 10) / sizeof(float);
    int iterations = std::atoi(argv[4]), warmup = std::atoi(argv[5]);
    gloo::transport::tcp::attr attr(argv[1]);
    auto device = gloo::transport::tcp::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[2]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    std::vector<float> in(count, static_cast<float>(rank + 1)), out(count);
    std::vector<double> times(static_cast<size_t>(iterations)), sums(times.size());
    for (int i = -warmup; i < iterations; i++) {
        gloo::BarrierOptions barrier(context);
        barrier.setTag(static_cast<uint32_t>(2 * (i + warmup)));
        gloo::barrier(barrier);
        auto start = std::chrono::steady_clock::now();
        allreduce(context, in, out, static_cast<uint32_t>(2 * (i + warmup) + 1));
        std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        if (i >= 0)
            times[static_cast<size_t>(i)] = time.count();
    }
    allreduce(context, times, sums, 1u << 20);
    double mean = 0;
    auto right = static_cast<float>(ranks * (ranks + 1) / 2);
    auto wrong = static_cast<long>(out.size()) - std::count(out.begin(), out.end(), right);
    for (double &sum : sums)
        mean += (sum /= ranks) / iterations;
    std::sort(sums.begin(), sums.end());
    if (rank == 0)
        std::printf("{\"time_mean_s\": %.9f, \"time_p50_s\": %.9f, \"time_p99_s\": %.9f, \"wrong\": %ld}\n",
                    mean, sums[(sums.size() - 1) / 2], sums[(sums.size() * 99 + 99) / 100 - 1], wrong);
    return 0;
}
