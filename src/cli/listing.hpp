#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "engine/tables.hpp"

namespace sekali::cli {

inline constexpr std::size_t kDefaultPage = 100;

/// The page that `--after` and `--limit` ask for, of items that are all here. They are put in the
/// order of their names; a page goes on behind the name of the last item before it.
template <typename Item, typename NameOf>
[[nodiscard]] engine::Page<Item> cut_page(std::vector<Item> items, const Arguments& args,
                                          NameOf&& name_of) {
    std::sort(items.begin(), items.end(),
              [&](const Item& a, const Item& b) { return name_of(a) < name_of(b); });
    const std::string after = args.text_or("after", "");
    const std::size_t limit = args.integer("limit").value_or(kDefaultPage);
    engine::Page<Item> page;
    for (Item& item : items) {
        if (!after.empty() && name_of(item) <= after) continue;
        if (page.items.size() == limit) {
            page.next = name_of(page.items.back());
            break;
        }
        page.items.push_back(std::move(item));
    }
    return page;
}

/// Tells on a terminal that a page is not the last one.
void tell_more(Output& out, const std::string& next);

/// Prints `{"items":[…],"next":…}`, or a table for people. `write` writes an item as JSON, `row`
/// gives its cells.
template <typename Item, typename Write, typename Row>
int print_page(Output& out, const engine::Page<Item>& page, std::vector<std::string> header,
               Write&& write, Row&& row) {
    if (out.json()) {
        std::string document;
        base::JsonWriter json(document);
        json.begin_object().field("items").begin_array();
        for (const Item& item : page.items)
            write(json, item);
        json.end_array().field("next");
        page.next.empty() ? json.value(nullptr) : json.value(page.next);
        json.end_object();
        out.line(document);
        return kExitDone;
    }
    TextTable table(std::move(header));
    for (const Item& item : page.items)
        table.add(row(item));
    if (!page.items.empty()) out.bytes(table.render());
    tell_more(out, page.next);
    return kExitDone;
}

}  // namespace sekali::cli
