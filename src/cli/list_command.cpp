// SPDX-License-Identifier: Apache-2.0
// `tilewright list`: the operators, and one operator's tensors and options.
#include "cli/json.h"
#include "cli/operator_page.h"
#include "cli/program.h"
#include "cli/text.h"

#include <memory>

namespace tilewright::cli {
namespace {

std::string types_text(const TensorSpec& spec) {
  std::string text;
  for (Type type : spec.types)
    text += (text.empty() ? "" : "|") + std::string(name(type));
  return text;
}

std::string words_text(const OptionSpec& spec) {
  std::string text;
  for (std::string_view word : spec.words)
    text += (text.empty() ? "" : "|") + std::string(word);
  return text;
}

std::string details(const Schema& schema) {
  std::string text = std::string(schema.name) + ": " + std::string(schema.doc) + "\n";
  if (!schema.formula.empty()) text += "  " + std::string(schema.formula) + "\n";
  Columns tensors;
  for (const TensorSpec& spec : schema.tensors) {
    const std::string optional = spec.presence == Presence::optional ? ", optional" : "";
    tensors.add({std::string(spec.name), std::string(name(spec.role)) + optional,
                 "[" + std::string(spec.shape) + "]", types_text(spec), std::string(spec.doc)});
  }
  text += "tensors\n" + tensors.text("  ");
  Columns options;
  for (const OptionSpec& spec : schema.options) {
    const std::string words = words_text(spec);
    const std::string kind = spec.type == OptionType::choice ? words
                             : words.empty()                 ? std::string(name(spec.type))
                                             : std::string(name(spec.type)) + "|" + words;
    if (spec.is_required()) {
      options.add({std::string(spec.name), kind + ", required", std::string(spec.doc)});
    } else {
      options.add({std::string(spec.name) + "=" + std::string(spec.default_text), kind,
                   std::string(spec.doc)});
    }
  }
  if (!schema.options.empty()) text += "options\n" + options.text("  ");
  return schema.limits.empty() ? text : text + "limits\n  " + std::string(schema.limits) + "\n";
}

Json json_of(const Schema& schema) {
  Json json = {{"name", schema.name},       {"version", schema.version}, {"doc", schema.doc},
               {"formula", schema.formula}, {"limits", schema.limits},   {"tensors", Json::array()},
               {"options", Json::array()}};
  for (const TensorSpec& spec : schema.tensors) {
    Json types = Json::array();
    for (Type type : spec.types)
      types.push_back(name(type));
    json["tensors"].push_back({{"name", spec.name},
                               {"role", name(spec.role)},
                               {"optional", spec.presence == Presence::optional},
                               {"shape", spec.shape},
                               {"types", types},
                               {"doc", spec.doc}});
  }
  for (const OptionSpec& spec : schema.options) {
    json["options"].push_back(
        {{"name", spec.name},
         {"type", name(spec.type)},
         {"default", spec.is_required() ? Json() : Json(spec.default_text)},
         {"words", std::vector<std::string_view>(spec.words.begin(), spec.words.end())},
         {"doc", spec.doc}});
  }
  return json;
}

void list(const Program& program, const std::string& only, Format format) {
  if (!only.empty()) {
    const Schema& schema = program.find(only).schema;
    format == Format::json ? print_json(json_of(schema)) : print(details(schema));
    return;
  }
  if (format == Format::json) {
    Json all = Json::array();
    for (const Operator* op : program.operators)
      all.push_back(json_of(op->schema));
    print_json(all);
    return;
  }
  Columns columns;
  for (const Operator* op : program.operators) {
    columns.add({std::string(op->schema.name), signature(op->schema), std::string(op->schema.doc)});
  }
  print(columns.text());
}

}  // namespace

void add_list_command(CLI::App& app, Program& program) {
  struct Request {
    std::string op;
    bool markdown = false;
    Format format = Format::text;
  };
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("list", "List the operators, or one operator's arguments");
  CLI::Option* op =
      command->add_option("OP", request->op, "Show this operator's tensors and options");
  command->add_flag("--markdown", request->markdown, "Print docs/operators.md, but for its figures")
      ->excludes(op);
  add_json_flag(*command, request->format);
  command->callback([&program, request] {
    request->markdown ? print(operator_page(program.operators))
                      : list(program, request->op, request->format);
  });
}

}  // namespace tilewright::cli
