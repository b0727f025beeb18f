// Entry point of penelope. Runs the command and turns errors into messages and exit codes: 0 success, 1 failure,
// 2 wrong usage, 130 interrupted (128 + signal number).
#include "commands.h"
#include "early_json.h"
#include "graph/ggml_abort.h"
#include "graph/rpc.h"
#include "help.h"
#include "interrupt.h"
#include "manual.h"
#include "model_names.h"
#include "output.h"

#include "base/atomic_file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "mpi/join_ranks.h"
#include "train/setting_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

namespace penelope {

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage  = 2;

int exit_code(const Error & error) {
    return error.kind == ErrorKind::usage       ? exit_usage
           : error.kind == ErrorKind::cancelled ? interrupted_exit_code()
                                                : exit_failed;
}

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const Command & command : command_table()) {
        names.emplace_back(command.name);
    }
    return names;
}

std::string version_text() {
    return "penelope " PENELOPE_VERSION "\n" + ggml_version_text() + "\nMPI: " + mpi_version_text();
}

void print_devices(Terminal & terminal) {
    std::vector<OrderedJson> rows;
    for (const DeviceInfo & device : list_devices()) {
        rows.push_back({ { "device", device.name },
                         { "description", device.description },
                         { "memory free", format_bytes(device.memory_free) },
                         { "memory total", format_bytes(device.memory_total) } });
    }
    terminal.write(format_table(rows, TableFormat::markdown));
}

// Checks --device before any work is done.
void check_device(const std::string & name) {
    try {
        find_device(name);
    } catch (const Error & error) {
        throw UsageError("--" + error.message(), error.hint);
    }
}

// "help" and "help run" like --help; "help --markdown", "help --settings", "help --man [run]",
// "help --completion" and "help --commands" for the files that are made from them.
int print_help(const std::vector<std::string> & args, Terminal & terminal) {
    if (args.size() > 1 && args[1] == "--markdown") {
        terminal.write(help_markdown());
        return 0;
    }
    if (args.size() > 1 && args[1] == "--settings") {
        terminal.write(settings_markdown());
        return 0;
    }
    if (args.size() > 1 && args[1] == "--man") {
        terminal.write(manual_page(args.size() > 2 ? find_command(args[2]) : nullptr));
        return 0;
    }
    if (args.size() > 1 && args[1] == "--completion") {
        terminal.write(bash_completion());
        return 0;
    }
    if (args.size() > 1 && args[1] == "--commands") {
        terminal.line(join(command_names(), "\n"));
        return 0;
    }
    const Command * command = args.size() > 1 && args[1][0] != '-' ? find_command(args[1]) : nullptr;
    if (args.size() > 1 && args[1][0] != '-' && command == nullptr) {
        parse_options({ args[1] }, command_names()); // throws, naming the nearest
    }
    terminal.write(command != nullptr ? command_help(*command, terminal.width(), terminal.color_out())
                                      : program_help(terminal.width(), terminal.color_out()));
    return 0;
}

bool json_errors = false; // --json was given

void set_json_errors(bool json) {
    json_errors = json;
    set_exit_message(json ? dump_json(error_json(Error(ErrorKind::cancelled, "interrupted: by a signal"))) + "\n" : "");
}

// Reports a fatal error of a device and exits. Calls nothing that may wait for the device.
[[noreturn]] void end_without_device(const Error & error) {
    if (json_errors) {
        std::printf("%s\n", dump_json(error_json(error)).c_str());
        std::fflush(stdout);
    } else {
        std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint.c_str());
    }
    remove_temporary_files();
    _exit(exit_failed);
}

// json: set as soon as it is known, because later errors are reported in that form.
int dispatch(const std::vector<std::string> & args, Terminal & terminal, bool & json) {
    if (!args.empty() && args[0] == "help") {
        return print_help(args, terminal);
    }
    if (std::find(args.begin(), args.end(), "-v") != args.end()) {
        log_set_level(LogLevel::debug); // so that parsing can log
    }
    const Options options = parse_options(args, command_names());
    json                  = find_command(options.command()) != nullptr && has_option(options.command(), "json") &&
           (options.flag("json") || (has_option(options.command(), "format") && options.text("format") == "json"));
    if (options.flag("quiet") && options.flag("verbose") && options.source("quiet") == options.source("verbose")) {
        throw UsageError("--quiet and --verbose: exclude each other", "give only one");
    }
    terminal.configure(options);
    set_json_errors(json);
    set_fatal_error_handler(end_without_device);
    if (options.given("rpc")) {
        add_rpc_servers(split(options.text("rpc"), ','));
    }
    if (options.flag("version")) {
        terminal.line(version_text());
        return 0;
    }
    if (options.flag("list-devices")) {
        print_devices(terminal);
        return 0;
    }
    if (options.given("device")) {
        check_device(options.text("device"));
    }
    const Command * command = find_command(options.command());
    if (options.flag("help")) {
        return print_help(command != nullptr ? std::vector<std::string>{ "help", command->name }
                                             : std::vector<std::string>{ "help" },
                          terminal);
    }
    if (command == nullptr) {
        throw UsageError("penelope: no command given", "'penelope --help' lists the commands");
    }
    return command->function(with_named_models(options, terminal), terminal);
}

int report(const Error & error, bool json, Terminal & terminal) {
    terminal.progress("");
    set_exit_message(""); // the error below replaces it
    if (json) {
        try {
            terminal.line(dump_json(error_json(error)));
            return exit_code(error);
        } catch (const Error &) {
            // stdout failed: use stderr.
        }
    }
    terminal.error(error);
    return exit_code(error);
}

// If the caller closed a standard stream, the next file opened would get its descriptor and messages would be written
// into that file. Such descriptors are opened read-only on /dev/null, so that writes fail and are noticed.
void open_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) == -1) {
            return; // no /dev/null: as it was
        }
    }
}

int run_program(const std::vector<std::string> & args) {
    open_standard_streams();
    set_mmap_threshold();
    Terminal terminal;
    install_interrupt_handler();
    bool json = wants_json(args); // known before parsing, which may be what fails
    set_json_errors(json);
    try {
        return dispatch(args, terminal, json);
    } catch (const Error & error) {
        return report(error, json, terminal);
    } catch (const std::bad_alloc &) {
        return report(
            Error(ErrorKind::memory, "out of memory: an allocation failed", "use a smaller --ctx-size or model"), json,
            terminal);
    } catch (const std::filesystem::filesystem_error & error) {
        return report(Error(ErrorKind::io, in_quotes(error.path1().string(), 1024) + ": " + error.code().message()),
                      json, terminal);
    } catch (const std::exception & error) {
        return report(Error(ErrorKind::io, std::string("internal: ") + error.what()), json, terminal);
    }
}

} // namespace

} // namespace penelope

int main(int argc, char ** argv) {
    return penelope::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
