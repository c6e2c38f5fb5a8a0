// A worker on PostgreSQL whose handlers write by a layer of their own on libpq, inside sekali's
// commit: what it writes and the job's success are one transaction.
//
//     own_layer prepare URL            makes the table
//     own_layer [FLAG…]                a worker, with every flag of `sekali work`
//     sekali enqueue stock.move '{"item":"bolt","count":-3}'

#include <libpq-fe.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sekali/postgres.hpp"
#include "sekali/worker_main.hpp"

namespace {

struct MoveStock {
    std::string item;
    std::int64_t count = 0;
    static constexpr std::string_view kKind = "stock.move";
    static constexpr auto kFields = sekali::fields(sekali::field("item", &MoveStock::item),
                                                   sekali::field("count", &MoveStock::count));
};

/// The layer: anything that takes a `PGconn*`.
class Stock {
 public:
    explicit Stock(PGconn* connection) : connection_(connection) {}

    void move(const std::string& item, std::int64_t count) const {
        const std::string number = std::to_string(count);
        const char* values[] = {item.c_str(), number.c_str()};
        const std::unique_ptr<PGresult, decltype(&PQclear)> done(
            PQexecParams(connection_,
                         "insert into stock values ($1, $2) on conflict (item)"
                         " do update set count = stock.count + excluded.count",
                         2, nullptr, values, nullptr, nullptr, 0),
            &PQclear);
        if (PQresultStatus(done.get()) != PGRES_COMMAND_OK) {
            throw std::runtime_error(PQerrorMessage(connection_));
        }
    }

 private:
    PGconn* connection_;
};

void register_handlers(sekali::Worker& worker) {
    worker.handle<MoveStock>(
        [](sekali::Context& ctx, const MoveStock& job) {
            return ctx.commit([&](sekali::Transaction& tx) {
                Stock(sekali::postgres::connection_of(tx)).move(job.item, job.count);
            });
        },
        {.effects = sekali::Effects::kCommit});
}

int prepare(const char* url) {
    sekali::Client::open(url)
        .value()
        .transact([](sekali::Transaction& tx) {
            tx.execute(
                "create table if not exists stock(item text primary key, count bigint not null "
                "check (count >= 0))");
        })
        .value();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "prepare") return prepare(argv[2]);
    return sekali::worker_main(argc, argv, register_handlers);
}
