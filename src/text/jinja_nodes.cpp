// The nodes that count: one derived class for every kind of node of the engine, and the walk that puts them into a
// tree.
#include "text/jinja_bounds.h"
#include "text/jinja_calls.h"

#include <algorithm>
#include <typeinfo>

namespace penelope {

namespace {

using namespace jinja;

constexpr size_t kUnitsOfItem = 4; // the engine copies all variables twice for each

[[noreturn]] void fail(const std::string & message) {
    throw JinjaFailure{ message };
}

// A value that is there already, as a node.
struct constant : public expression {
    value held;
    explicit constant(value v) : held(std::move(v)) {}
    value execute_impl(context &) override { return held; }
};

template <typename Node> struct Bounded : public Node {
    explicit Bounded(Node && node) : Node(std::move(node)) {}

    value execute_impl(context & ctx) override {
        JinjaBudget::check_stack();
        JinjaBudget::spend(1);
        if constexpr (std::is_same_v<Node, call_expression>) {
            return run_call(ctx);
        } else if constexpr (std::is_same_v<Node, filter_expression>) {
            return run_filter(ctx);
        } else if constexpr (std::is_same_v<Node, binary_expression>) {
            return run_binary(ctx);
        } else if constexpr (std::is_same_v<Node, test_expression>) {
            return run_test(ctx);
        } else if constexpr (std::is_same_v<Node, set_statement>) {
            return run_set(ctx);
        } else {
            const value result = Node::execute_impl(ctx);
            if constexpr (std::is_same_v<Node, identifier> || std::is_same_v<Node, member_expression>) {
                JinjaBudget::spend(result->val_str.length() / jinja_unit);
            } else {
                pay(result);
            }
            return result;
        }
    }

  private:
    // As the engine does, with a look at the arguments before the call.
    value run_call(context & ctx) {
        func_args given(ctx);
        for (const statement_ptr & arg : this->args) {
            given.push_back(arg->execute(ctx));
        }
        value called = this->callee->execute(ctx);
        if (!is_val<value_func>(called)) {
            throw std::runtime_error("Callee is not a function: got " + called->type());
        }
        const value_func_t & func = *cast_val<value_func>(called);
        check_call(func.name, func.arg0, given.get_args());
        const bool  strips = given.count() == 0 && func.arg0 && is_strip(func.name) && is_val<value_string>(func.arg0);
        const value result = strips ? stripped(func.name, func.arg0) : func.invoke(given);
        pay_changed(result);
        return result;
    }

    value run_filter(context & ctx) {
        value        input = this->operand ? this->operand->execute(ctx) : value(this->val);
        const auto * call  = cast_stmt<call_expression>(this->filter);
        const auto * name  = call ? cast_stmt<identifier>(call->callee) : cast_stmt<identifier>(this->filter);
        if (!name) {
            throw std::runtime_error("Filter must be a name");
        }
        std::vector<value> args;
        statements         nodes;
        for (size_t i = 0; call && i < call->args.size(); i++) {
            args.push_back(call->args[i]->execute(ctx));
            nodes.push_back(std::make_unique<constant>(args.back()));
        }
        check_call(name->val, input, args);
        if (args.empty() && is_strip(name->val) && is_val<value_string>(input)) {
            return stripped(name->val, input);
        }
        statement_ptr same = std::make_unique<identifier>(name->val);
        if (call) {
            same = std::make_unique<call_expression>(std::move(same), std::move(nodes));
        }
        filter_expression again(std::make_unique<constant>(std::move(input)), std::move(same));
        const value       result = again.execute_impl(ctx);
        pay_changed(result);
        return result;
    }

    value run_binary(context & ctx) {
        if (this->op.value != "*") {
            const value result = binary_expression::execute_impl(ctx);
            pay(result);
            return result;
        }
        value a = this->left->execute(ctx), b = this->right->execute(ctx);
        if (is_val<value_string>(b)) {
            std::swap(a, b); // 3 * 'x' is 'x' * 3
        }
        if (is_val<value_string>(a) && is_val<value_int>(b)) {
            const uint64_t times = uint64_t(std::max<int64_t>(b->as_int(), 0));
            if (times > largest_jinja_result / (a->val_str.length() + 1)) {
                fail("*: the text would be too long");
            }
            JinjaBudget::spend(times * (a->val_str.parts.size() + 1));
        }
        binary_expression again(this->op, std::make_unique<constant>(std::move(a)),
                                std::make_unique<constant>(std::move(b)));
        const value       result = again.execute_impl(ctx);
        pay(result);
        return result;
    }

    value run_test(context & ctx) {
        const auto * call = cast_stmt<call_expression>(this->test);
        const auto * name = call ? cast_stmt<identifier>(call->callee) : nullptr;
        if (name && name->val == "divisibleby") { // by zero it ends the process
            func_args args(ctx);
            args.push_back(this->operand->execute(ctx));
            for (const statement_ptr & arg : call->args) {
                args.push_back(arg->execute(ctx));
            }
            args.ensure_vals<value_int, value_int>();
            const int64_t divisor = args.get_pos(1)->as_int();
            if (divisor == 0) {
                throw std::runtime_error("divisibleby: division by zero");
            }
            const bool divides = divisor == -1 || args.get_pos(0)->as_int() % divisor == 0;
            return mk_val<value_bool>(divides != this->negate);
        }
        return test_expression::execute_impl(ctx);
    }

    value run_set(context & ctx) {
        const value result = set_statement::execute_impl(ctx);
        if (auto * member = cast_stmt<member_expression>(this->assignee)) {
            const auto * name = cast_stmt<identifier>(member->object);
            if (!name) {
                fail("set: expected NAME.FIELD");
            }
            pay_changed(ctx.get_val(name->val)); // it may hold itself now
        }
        return result;
    }
};

// Pays for every item a loop goes over, before it does.
struct loop_items : public expression {
    statement_ptr items;
    explicit loop_items(statement_ptr && node) : items(std::move(node)) {}
    value execute_impl(context & ctx) override {
        value v = items->execute(ctx);
        JinjaBudget::spend(kUnitsOfItem * (v->val_arr.size() + v->val_obj.size()));
        return v;
    }
};

void bound(statement_ptr & node);

void bound(statements & nodes) {
    for (statement_ptr & node : nodes) {
        bound(node);
    }
}

// Names of filters, tests, loop variables and assigned variables stay as they are: the engine looks at the nodes
// themselves.
void bound_arguments(statement_ptr & filter_or_test) {
    if (auto * call = cast_stmt<call_expression>(filter_or_test)) {
        bound(call->args);
    }
}

void bound_children(if_statement & node) {
    bound(node.test);
    bound(node.body);
    bound(node.alternate);
}
void bound_children(for_statement & node) {
    auto *          select = cast_stmt<select_expression>(node.iterable);
    statement_ptr & items  = select ? select->lhs : node.iterable;
    bound(items);
    items = std::make_unique<loop_items>(std::move(items));
    if (select) {
        bound(select->test);
    }
    bound(node.body);
    bound(node.default_block);
}
void bound_children(set_statement & node) {
    bound(node.val);
    bound(node.body);
}
void bound_children(macro_statement & node) {
    for (statement_ptr & arg : node.args) {
        if (auto * named = cast_stmt<keyword_argument_expression>(arg)) {
            bound(named->val);
        }
    }
    bound(node.body);
}
void bound_children(member_expression & node) {
    bound(node.object);
    if (auto * slice = cast_stmt<slice_expression>(node.property)) {
        bound(slice->start_expr);
        bound(slice->stop_expr);
        bound(slice->step_expr);
    } else if (node.computed) {
        bound(node.property);
    }
}
void bound_children(call_expression & node) {
    bound(node.callee);
    bound(node.args);
}
void bound_children(array_literal & node) {
    bound(node.val);
}
void bound_children(tuple_literal & node) {
    bound(node.val);
}
void bound_children(object_literal & node) {
    for (auto & [key, item] : node.val) {
        bound(key);
        bound(item);
    }
}
void bound_children(binary_expression & node) {
    bound(node.left);
    bound(node.right);
}
void bound_children(filter_expression & node) {
    bound(node.operand);
    bound_arguments(node.filter);
}
void bound_children(filter_statement & node) {
    bound_arguments(node.filter);
    bound(node.body);
}
void bound_children(select_expression & node) {
    bound(node.lhs);
    bound(node.test);
}
void bound_children(test_expression & node) {
    bound(node.operand);
    bound_arguments(node.test);
}
void bound_children(unary_expression & node) {
    bound(node.argument);
}
void bound_children(keyword_argument_expression & node) {
    bound(node.val);
}
void bound_children(call_statement & node) {
    if (auto * call = cast_stmt<call_expression>(node.call)) {
        bound(call->callee);
        bound(call->args);
    }
    bound(node.body);
}
void bound_children(ternary_expression & node) {
    bound(node.condition);
    bound(node.true_expr);
    bound(node.false_expr);
}
void bound_children(identifier &) {}

template <typename Node> bool bound_as(statement_ptr & node) {
    if (typeid(*node) != typeid(Node)) {
        return false;
    }
    bound_children(static_cast<Node &>(*node));
    node = std::make_unique<Bounded<Node>>(std::move(static_cast<Node &>(*node)));
    return true;
}

template <typename... Nodes> void bound_as_one_of(statement_ptr & node) {
    (bound_as<Nodes>(node) || ...);
}

void bound(statement_ptr & node) {
    if (node) {
        bound_as_one_of<if_statement, for_statement, set_statement, macro_statement, member_expression, call_expression,
                        array_literal, tuple_literal, object_literal, binary_expression, filter_expression,
                        filter_statement, select_expression, test_expression, unary_expression,
                        keyword_argument_expression, call_statement, ternary_expression, identifier>(node);
    }
}

} // namespace

void bound_jinja(jinja::program & program) {
    bound(program.body);
}

} // namespace penelope
