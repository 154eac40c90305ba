// The driver of local rewrites: a rule looks at one instruction and may return a value to use in its place.
#pragma once

#include "compiler/graph/builder.h"
#include "compiler/passes/pass.h"

#include <functional>

namespace firn {

// Calls `visit` on the body of every function and on the regions of if and while beneath, outer before inner.
// Regions of fusions, composites and reducers are contracts with other parts of the compiler and are left
// alone.
void for_each_region(Module& module, const std::function<void(Region&)>& visit);

// Whether the module has the function that is compiled, Module::main(): texts of several functions may lack
// it.
bool has_main(const Module& module);

// Returns the value that replaces the instruction's only result (of the same type), or no value to leave it;
// what it made until then is discarded. New instructions go in front of the instruction. The rule may not
// erase anything.
using RewriteRule = Value (*)(Instruction& instruction, const PassOptions& options);

// Applies the rule in order to every instruction of every region until nothing changes (at most a fixed
// number of rounds, so that two rules that undo each other cannot hang the compiler). Instructions that lose
// their last use are erased. Tells whether anything changed.
bool rewrite_module(Module& module, const PassOptions& options, RewriteRule rule);

// Makes all users of the instruction's only result use `value`, and erases the instruction.
void replace_instruction(Instruction& instruction, Value value);
// The place for code that uses the value before all others do: in front of the next instruction behind the
// value, past all parameters; null: the region's end.
Instruction* behind(Value value);
// The value in another type, for all its users: a conversion behind it, or another constant for a constant.
Value convert_behind(Value value, DType dtype);
// The number of leading operands whose elements the result has, if the op only moves these or takes their
// maximum in windows: padding values and start values of windows count, indices do not. 0: it does something
// else.
int moved_operands(const Instruction& instruction);
// Repeats such an op over `of` in place of its first operands. Windows start from the least value of the type
// unless `of` has a start value.
Value moved(GraphBuilder& builder, const Instruction& movement, const std::vector<Value>& of);
// Makes these users of the value read `converted`, which holds the same numbers. Users that are no
// conversions read it through a conversion back, so that the value is stored in that type alone.
void read_converted(Value value, Value converted, const std::vector<Instruction*>& users);
// Makes all elementwise users in the region that computes the value read `converted`, as read_converted()
// does.
void share_converted(Value value, Value converted);
// Erases the instruction if nothing uses it, and then its operands for the same reason, and so on.
void erase_if_dead(Instruction* instruction);

} // namespace firn
