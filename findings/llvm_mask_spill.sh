#!/usr/bin/env bash
# LLVM 19, 20 and 22, x86-64 with AVX-512: a mask that is spilled loses the instruction that cleared its
# upper half.
#
# A masked store of <8 x i8> is widened to 16 bytes, of which the mask must leave out the upper 8.
# The mask comes from a comparison of bytes, whose instruction gives 16 bits, so the code generator
# clears the upper 8 with "kmovb". The register allocator takes that instruction for a copy: if the
# mask must be spilled, it spills the 16 bits of the comparison instead. The store then takes 16
# lanes, though the operands of the intrinsic have 8.
#
# This script only compiles, and reads the assembly; nothing is run. The function compares lane
# numbers with a count, loads with the mask, lets inline assembly use all mask registers, and stores
# with the mask. Between the comparison and the store, the assembly must contain "kmovb" (or a pair
# of shifts).
#
#   expected: the mask is cleared, by every version
#   seen:     LLVM 15.0.7 clears it; 20.1.8 and 22.1.0 do not (19.1.7 of Debian 12 does not either,
#             and 15.0.6 and 16.0.6 do; 17 and 18 were not tried)
#
# usage: findings/llvm_mask_spill.sh        Ends with 0 if the versions still behave as stated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"

cat >"$folder/try.py" <<'PYTHON'
import sys

import llvmlite.binding as llvm

TEXT = """
define void @f(PTR_D %from, PTR_V %to, i8 %count) #0 {
  %first = insertelement <8 x i8> undef, i8 %count, i64 0
  %counts = shufflevector <8 x i8> %first, <8 x i8> undef, <8 x i32> zeroinitializer
  %mask = icmp ult <8 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7>, %counts
  %x = call <8 x double> @llvm.masked.load.v8f64.NAME_D(PTR_D %from, i32 8, <8 x i1> %mask,
                                                       <8 x double> zeroinitializer)
  call void asm sideeffect "", "~{k0},~{k1},~{k2},~{k3},~{k4},~{k5},~{k6},~{k7}"()
  %is = fcmp oge <8 x double> %x, zeroinitializer
  %bytes = zext <8 x i1> %is to <8 x i8>
  call void @llvm.masked.store.v8i8.NAME_V(<8 x i8> %bytes, PTR_V %to, i32 1, <8 x i1> %mask)
  ret void
}
declare <8 x double> @llvm.masked.load.v8f64.NAME_D(PTR_D, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8i8.NAME_V(<8 x i8>, PTR_V, i32, <8 x i1>)
attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
"""
version = llvm.llvm_version_info
opaque = version[0] >= 17
for name, value in {
        "PTR_D": "ptr" if opaque else "<8 x double>*", "PTR_V": "ptr" if opaque else "<8 x i8>*",
        "NAME_D": "p0" if opaque else "p0v8f64", "NAME_V": "p0" if opaque else "p0v8i8"}.items():
    TEXT = TEXT.replace(name, value)
try:
    llvm.initialize()
except RuntimeError:
    pass  # newer versions need no call
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(
    cpu="x86-64-v4", opt=2)
lines = [line.strip() for line in machine.emit_assembly(llvm.parse_assembly(TEXT)).splitlines()]
compared = next(at for at, line in enumerate(lines) if line.startswith("vpcmp"))
stored = next(at for at, line in enumerate(lines) if line.startswith("vmovdqu8") and "(%rsi)" in line)
between = lines[compared:stored + 1]
assert any("kmovw" in line and "rsp" in line for line in between), "the mask is not spilled"
is_cleared = any(line.startswith(("kmovb", "kshiftlw")) for line in between)
print("\n".join(line for line in between if line.startswith(("vpcmp", "k", "vmovdqu8"))))
print(f"LLVM {'.'.join(map(str, version))}: the upper half is", "cleared" if is_cleared else "not cleared")
sys.exit(0 if is_cleared == (sys.argv[1] == "cleared") else 1)
PYTHON

status=0
for expectation in 0.44.0:cleared 0.45.1:kept 0.50.0:kept; do
  version=${expectation%:*}
  "$folder/venv/bin/pip" install --quiet --target "$folder/$version" "llvmlite==$version"
  PYTHONPATH=$folder/$version "$folder/venv/bin/python" "$folder/try.py" "${expectation#*:}" ||
    { echo "llvmlite $version does not behave as stated" && status=1; }
done
exit "$status"
