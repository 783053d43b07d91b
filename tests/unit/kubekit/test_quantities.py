import pytest

from kubekit import quantities

ORDERED = [
    ("50m", "1"),
    ("999M", "1Gi"),
    ("1Ki", "1.1k"),
    ("1e3", "1Ki"),
    ("1E", "1Ei"),
    ("0.5", "501m"),
    ("100n", "1u"),
    ("-1", "0"),
    (".5", "5."),
    ("1E2", "1k"),
    ("1e-3", "2m"),
]
NOT_QUANTITIES = ["", "lots", "1 Gi", "1gi", "1GiB", "0x10", "1e", "--1", ".", "1,5", "٣", "1e999", "1\n"]


@pytest.mark.parametrize(("smaller", "larger"), ORDERED)
def test_quantities_are_compared_as_kubernetes_compares_them(smaller: str, larger: str) -> None:
    assert quantities.exceeds(larger, smaller)
    assert not quantities.exceeds(smaller, larger)
    assert not quantities.exceeds(smaller, smaller)


@pytest.mark.parametrize(("text", "same"), [("1Mi", "1024Ki"), ("1E", "1000P"), ("1e3", "1k"), ("1.5", "1500m")])
def test_one_amount_can_be_written_in_several_ways(text: str, same: str) -> None:
    assert quantities.parse(text) == quantities.parse(same)


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_a_text_that_is_not_a_quantity(text: str) -> None:
    assert quantities.parse(text) is None
    assert not quantities.exceeds(text, "0")
    assert not quantities.exceeds("1", text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("10GB", "10G"), ("1gi", "1Gi"), ("512 MiB", "512Mi"), ("5K", "5k"), ("1.5tb", "1.5T"), ("lots", ""), ("10", "")],
)
def test_a_misspelled_quantity_brings_the_right_one(text: str, meant: str) -> None:
    assert quantities.suggest(text) == meant
