#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/memory/memory_store.hpp"
#include "base/fingerprint.hpp"
#include "engine/operations.hpp"

namespace sekali::observe {

/// A memory store, and jobs that are moved through the protocol by hand.
class StoreFixture : public testing::Test {
 protected:
    using Millis = engine::Millis;

    template <typename Work>
    auto transact(Work&& work) {
        std::optional<decltype(work(std::declval<engine::Tables&>()))> out;
        store_.submit({{.work = [&](engine::Tables& tables) { out = work(tables); },
                        .done = [](const Result<void>& result) { result.value(); }}});
        store_.run_all();
        return *std::move(out);
    }

    std::string enqueue(engine::Envelope job, std::optional<Millis> delay = std::nullopt) {
        static int count = 0;
        if (job.id.empty()) job.id = fmt_id(++count);
        if (job.key.empty()) job.key = job.id;
        if (job.kind.empty()) job.kind = "payment.charge";
        job.payload = job.payload.empty() ? "{}" : job.payload;
        job.fingerprint = base::fingerprint(job.payload, "").value();
        return transact([&](engine::Tables& tables) {
                   return engine::enqueue(tables, {.job = job, .delay = delay});
               })
            .id;
    }

    static std::string fmt_id(int count) {
        std::string digits = std::to_string(count);
        return "01990000-0000-7000-8000-" + std::string(12 - digits.size(), '0') + digits;
    }

    void add_worker(const std::string& id, std::vector<std::string> kinds = {"payment.charge"},
                    std::vector<std::string> queues = {"default"}) {
        engine::WorkerRow worker;
        worker.id = id;
        worker.ns = "default";
        worker.kinds = std::move(kinds);
        worker.queues = std::move(queues);
        transact([&](engine::Tables& tables) {
            engine::heartbeat(tables, {.worker = worker, .lease = Millis{60'000}});
            return true;
        });
    }

    std::vector<engine::Delivery> claim(const std::string& worker) {
        return transact([&](engine::Tables& tables) {
                   return engine::claim(tables, {.spec = {.ns = "default",
                                                          .queues = {"default"},
                                                          .kinds = {"payment.charge"},
                                                          .limit = 10},
                                                 .worker = worker,
                                                 .lease = kLease});
               })
            .deliveries;
    }

    engine::RunRef begin(const engine::Delivery& delivery, const std::string& worker,
                         bool may_take_over = false) {
        const engine::JobRow& row = delivery.row;
        engine::RunRef run;
        run.job_id = row.job.id;
        run.record = {row.job.ns, row.job.kind, row.job.key};
        run.worker = worker;
        run.delivery = row.deliveries;
        run.lock_key = row.job.lock_key;
        const engine::BeginReply reply = transact([&](engine::Tables& tables) {
            return engine::begin(tables, {.job = row.job,
                                          .run = run,
                                          .policy = policy_,
                                          .lease = kLease,
                                          .may_take_over = may_take_over,
                                          .lock_token = "token-" + row.job.id});
        });
        if (const auto* started = std::get_if<engine::Started>(&reply)) {
            run.epoch = started->epoch;
            run.fence = started->fence;
        }
        return run;
    }

    void settle(const engine::Delivery& delivery, const engine::RunRef& run,
                engine::Outcome outcome) {
        transact([&](engine::Tables& tables) {
            engine::Settle request;
            request.run = run;
            request.job = delivery.row.job;
            request.policy = policy_;
            request.outcome = std::move(outcome);
            return engine::settle(tables, request);
        });
    }

    static constexpr Millis kLease{15'000};
    engine::KindPolicy policy_;
    memory::MemoryStore store_;
};

}  // namespace sekali::observe
