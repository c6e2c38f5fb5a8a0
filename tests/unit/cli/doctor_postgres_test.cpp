#include "cli/doctor_postgres.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// What doctor makes of what a server says; what a server says of itself is tested with one.
namespace sekali::cli {
namespace {

using namespace std::chrono_literals;
using observe::Finding;
using observe::Severity;
using postgres::Diagnosis;

Diagnosis good() {
    Diagnosis found;
    found.server = "15.6";
    found.schema = 1;
    found.fsync = found.synchronous_commit = found.full_page_writes = "on";
    found.isolation = "read committed";
    found.oldest_snapshot = 20ms;
    found.oldest_snapshot_of = "4711 psql";
    found.connections = 20;
    found.connection_limit = 97;
    found.replication_lag = 5ms;
    return found;
}

using Objections = std::vector<std::pair<std::string, Severity>>;

Objections objections(const Diagnosis& found) {
    std::vector<Finding> findings;
    StoreAddress address;
    address.postgres = "postgres://db/app";
    judge_postgres(findings, address, found);
    Objections made;
    for (const Finding& finding : findings) {
        EXPECT_EQ(finding.advice.empty(), finding.severity == Severity::kOk) << finding.check;
        if (finding.severity != Severity::kOk) made.emplace_back(finding.check, finding.severity);
    }
    return made;
}

Objections one(const char* check, Severity severity) {
    return {{check, severity}};
}

TEST(DoctorPostgres, AGoodServerIsPassed) {
    EXPECT_EQ(objections(good()), Objections{});
}

TEST(DoctorPostgres, WhatACrashMayTakeBackIsUnsafe) {
    for (std::string Diagnosis::*setting :
         {&Diagnosis::fsync, &Diagnosis::full_page_writes, &Diagnosis::synchronous_commit}) {
        Diagnosis found = good();
        found.*setting = "off";
        EXPECT_EQ(objections(found), one("durability", Severity::kUnsafe));
    }
}

TEST(DoctorPostgres, AnotherIsolationIsSaid) {
    for (const char* level : {"repeatable read", "serializable"}) {
        Diagnosis found = good();
        found.isolation = level;
        EXPECT_EQ(objections(found), one("isolation", Severity::kWarning));
    }
}

TEST(DoctorPostgres, AReadOnlyServerIsUnsafe) {
    Diagnosis found = good();
    found.read_only = true;
    EXPECT_EQ(objections(found), one("server", Severity::kUnsafe));
}

TEST(DoctorPostgres, OldSnapshotsAndDeadRows) {
    Diagnosis found = good();
    found.oldest_snapshot = 6min;
    EXPECT_EQ(objections(found), one("oldest snapshot", Severity::kWarning));
    found = good();
    found.dead_rows = 200'000;
    found.live_rows = 1000;
    EXPECT_EQ(objections(found), (Objections{{"oldest snapshot", Severity::kWarning},
                                             {"dead rows", Severity::kWarning}}));
    found.oldest_snapshot_of.clear();
    EXPECT_EQ(objections(found), one("dead rows", Severity::kWarning));
    found.live_rows = 1'000'000;
    EXPECT_EQ(objections(found), Objections{});
    found.autovacuum = false;
    EXPECT_EQ(objections(found), one("dead rows", Severity::kUnsafe));
}

TEST(DoctorPostgres, ConnectionsCollationLagAndClock) {
    Diagnosis found = good();
    found.connections = 90;
    EXPECT_EQ(objections(found), one("connections", Severity::kWarning));
    found = good();
    found.collation_mismatch = "2.31 recorded, 2.36 present";
    EXPECT_EQ(objections(found), one("collation", Severity::kWarning));
    found = good();
    found.replication_lag = 31s;
    EXPECT_EQ(objections(found), one("replication", Severity::kWarning));
    for (const auto ahead : {2s, -2s}) {
        found = good();
        found.clock_ahead = ahead;
        EXPECT_EQ(objections(found), one("clock", Severity::kWarning));
    }
}

}  // namespace
}  // namespace sekali::cli
