# SPDX-License-Identifier: Apache-2.0
"""Layouts, the emulator on any PTX, cache, tuning, doctor; documentation made from schemas."""
import ast
import inspect
import pathlib
import signal

import numpy
import pytest

import tilewright

NEIGHBOUR = """.version 8.0
.target sm_80
.address_size 64
.visible .entry neighbour(.param .u64 out, .param .u32 bias) {
  .reg .b32 %r<7>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 words[256];
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r6, [bias];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, words;
  shl.b32 %r2, %r0, 2;
  add.s32 %r3, %r1, %r2;
  st.shared.u32 [%r3], %r0;
  BARRIER
  xor.b32 %r4, %r2, 128;
  add.s32 %r4, %r1, %r4;
  ld.shared.u32 %r5, [%r4];
  add.u32 %r5, %r5, %r6;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd2, %rd0, %rd1;
  st.global.u32 [%rd2], %r5;
  ret;
}
"""


def emulate(barrier, **how):
    out = numpy.zeros(64, numpy.uint32)
    report = tilewright.emulate(NEIGHBOUR.replace("BARRIER", barrier), block=64, args=[out, 5], **how)
    return report, out


def test_emulate_runs_ptx_and_copies_back():
    report, out = emulate("bar.sync 0;", counters=True)
    assert report.ok and not report.findings
    numpy.testing.assert_array_equal(out, (numpy.arange(64) ^ 32) + 5)
    assert report.counters["global_written_bytes"] == 256


def test_emulate_reports_a_race():
    report, _ = emulate("")
    assert not report.ok and report.findings[0].kind == "race"
    assert report.findings[0].place.instruction == "ld.shared.u32" or report.findings[0].other is not None
    assert "race" in str(report.findings[0])


def test_findings_are_an_exception_with_the_first_ones_text():
    report, _ = emulate("")
    error = tilewright.FindingsError(report.findings)
    assert isinstance(error, RuntimeError)
    assert str(error) == report.findings[0].text and error.findings == report.findings


@pytest.mark.parametrize("how, text", [
    ({"args": []}, "emulate: neighbour has 2 parameters, not 0"),
    ({"entry": "other"}, "emulate: no entry is named 'other'; the PTX has neighbour"),
    ({"block": 0}, "emulate: block has the extent 0; it must be a positive integer"),
    ({"args": [numpy.zeros(64, numpy.uint32), 1.5]}, "emulate: argument 1 is 1.5 for a parameter of type u32"),
    ({"args": [numpy.zeros(64, numpy.uint32), 1 << 40]}, "emulate: argument 1 is 1099511627776, which does not fit 4 "
                                                         "bytes"),
    ({"args": [numpy.zeros(64, numpy.uint32), -1], "residency": "some"}, "emulate: residency is 'some'; it must be one "
                                                                         "of all, estimate, one"),
    ({"args": [numpy.zeros((8, 16), numpy.uint32)[:, :8], 1]}, "emulate: argument 0 has no contiguous buffer"),
])
def test_emulate_says_what_is_wrong(how, text):
    with pytest.raises(ValueError) as error:
        tilewright.emulate(NEIGHBOUR.replace("BARRIER", ""), **{"args": [numpy.zeros(64, numpy.uint32), 1], **how})
    assert text in str(error.value)


def test_a_signal_ends_a_launch():
    endless = """.version 8.0
.target sm_80
.address_size 64
.visible .entry count() {
  .reg .b32 %r<2>;
  .shared .align 4 .b32 count_of_turns;  // a loop that changes nothing ends as a finding
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  st.shared.u32 [count_of_turns], %r1;
  bra again;
}
"""

    def ring(*_):
        raise TimeoutError("rung")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError, match="rung"):
            tilewright.emulate(endless)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_layout_has_text_table_and_picture():
    layout = tilewright.layout("composition((6,2):(8,2), (4,3):(3,1))")
    assert str(layout) == "((2,2),3):((24,2),8)"
    assert layout._repr_svg_().startswith("<svg") and "24" in layout.table()


def test_a_value_that_is_no_layout_has_no_picture():
    size = tilewright.layout("size((4,8):(1,4))")
    assert size.text == "32" and size._repr_svg_() is None
    with pytest.raises(ValueError, match="is no layout, so there is no picture"):
        size.svg()


def test_layout_mistakes_are_value_errors():
    with pytest.raises(ValueError, match="cannot read .*: expected an integer at column 10"):
        tilewright.layout("(4,8):(1,")
    assert "composition" in [name for name, _, _ in tilewright.layout_functions()]


def test_the_cache_counts():
    x = numpy.ones((1, 96), numpy.float32)
    tilewright.ops.rms_norm(x)
    before = tilewright.cache.counters()["memory_hits"]
    tilewright.ops.rms_norm(x)
    assert tilewright.cache.counters()["memory_hits"] > before
    assert tilewright.cache.directory() == "" and tilewright.cache.entries() == []


def test_doctor_gives_reasons():
    state = tilewright.doctor()
    assert state["operators"] == len(tilewright.ops.__all__)
    assert state["devices"] or state["no_cuda"]


def test_tuning_needs_a_gpu_or_a_dry_run():
    with pytest.raises(RuntimeError):
        tilewright.tune("rms_norm", ["T=1,H=64,x=f32"], device="emu:sm_90a")


def test_stubs_have_the_names_of_the_module():
    stubs = ast.parse(pathlib.Path(tilewright.__file__).with_name("ops.pyi").read_text())
    given = {each.targets[0].id: each.value for each in stubs.body if isinstance(each, ast.Assign)}
    functions = [each.name for each in stubs.body if isinstance(each, ast.FunctionDef)]
    assert ast.literal_eval(given["__all__"]) == functions == tilewright.ops.__all__
    assert all(name.startswith("_") for name in given)


@pytest.mark.parametrize("name", tilewright.ops.__all__)
def test_every_operator_has_documentation_and_a_stub(name):
    op = getattr(tilewright.ops, name)
    assert op.__name__ == name
    schema = tilewright.schema(op)
    for each in schema["tensors"] + schema["options"]:
        assert each["name"] in op.__doc__
    stubs = ast.parse(pathlib.Path(tilewright.__file__).with_name("ops.pyi").read_text())
    stub = next(each for each in stubs.body if isinstance(each, ast.FunctionDef) and each.name == name)
    positional = [each["name"] for each in schema["tensors"] if each["role"] != "output"]
    assert [each.arg for each in stub.args.args] == positional
    parameters = inspect.signature(op).parameters
    assert list(parameters) == positional + [each.arg for each in stub.args.kwonlyargs]
