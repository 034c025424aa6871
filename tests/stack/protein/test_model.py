"""What a prediction may and may not depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from ddpdoctor.stack.config import parse
from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.protein.backbone import UNKNOWN
from ddpdoctor.stack.protein.graph import GraphConfig, Sample, build_graph, collate
from ddpdoctor.stack.protein.model import MaskedResidueModel, ModelConfig, masked_loss_sum
from tests.stack.protein.chains import backbone, sample


def model() -> MaskedResidueModel:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    return MaskedResidueModel(GraphConfig(), ModelConfig(hidden_dim=16, heads=2)).eval()


def scores(*samples: Sample) -> torch.Tensor:
    result: torch.Tensor = model()(collate(samples)).detach()
    return result


def test_a_chain_that_is_turned_has_the_same_prediction_and_its_mirror_image_another() -> None:
    chain = backbone(length=20)
    graph, mask = sample(length=20)
    turn = Rotation.random(rng=np.random.default_rng(1)).as_matrix()
    turned = replace(chain, positions=chain.positions @ turn.T - 3.0)
    mirrored = replace(chain, positions=chain.positions * [-1, 1, 1])
    expected = scores((graph, mask))
    same, other = (scores((build_graph(c, GraphConfig()), mask)) for c in (turned, mirrored))
    torch.testing.assert_close(same, expected, atol=1e-5, rtol=0)
    assert not torch.allclose(other, expected, atol=1e-3)


def test_a_prediction_does_not_depend_on_what_is_masked_but_on_what_is_seen() -> None:
    graph, mask = sample()
    expected = scores((graph, mask))

    def with_others_where(chosen: torch.Tensor) -> torch.Tensor:
        residues = torch.where(chosen, (graph.residues + 7) % UNKNOWN, graph.residues)
        return scores((replace(graph, residues=residues), mask))

    assert torch.equal(with_others_where(mask), expected)
    assert not torch.allclose(with_others_where(~mask), expected)


def test_a_prediction_does_not_depend_on_its_batch() -> None:
    many = [sample(seed, length=10 + seed) for seed in range(4)]
    torch.testing.assert_close(scores(*many), torch.cat([scores(one) for one in many]))


def test_every_parameter_takes_part_even_where_nothing_is_masked() -> None:
    # One that did not would be an error under DDP, in the second step.
    graph, mask = sample()
    network = model()
    for batch in (collate([(graph, mask)]), collate([(graph, mask & False)]), collate([])):
        network.zero_grad(set_to_none=True)
        loss = masked_loss_sum(network(batch), batch.labels)
        loss.backward()
        assert [name for name, p in network.named_parameters() if p.grad is None] == []
        if batch.weight == 0:
            assert loss.item() == 0
            assert not any(p.grad.any() for p in network.parameters())


def test_a_residue_with_nobody_near_has_a_finite_prediction_and_gradient() -> None:
    graph, _ = sample()
    alone = replace(
        graph, **{n: getattr(graph, n)[:0] for n in ("source", "target", "length", "offset")}
    )
    alone = replace(alone, orientation=graph.orientation[:0])
    network = model()
    batch = collate([(alone, torch.ones(12, dtype=torch.bool))])
    masked_loss_sum(network(batch), batch.labels).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


def test_a_width_that_the_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="hidden_dim 10 is not a multiple of heads 4"):
        parse(ModelConfig, {"hidden_dim": 10})
