import numpy as np
import pytest

from amber.errors import UserError
from amber.tasks.windows import check_window, roomiest, windows


def test_windows_start_every_stride_and_end_with_the_text():
    assert windows(10, capacity=4, stride=3) == [(0, 4), (3, 7), (6, 10)]
    assert windows(11, capacity=4, stride=3) == [(0, 4), (3, 7), (6, 10), (9, 11)]
    assert windows(4, capacity=4, stride=1) == [(0, 4)]
    assert windows(0, capacity=4, stride=2) == [(0, 0)]


@pytest.mark.parametrize("stride", [0, 5])
def test_a_stride_that_leaves_gaps_is_refused(stride):
    with pytest.raises(ValueError, match="from 1 to 4"):
        windows(10, capacity=4, stride=stride)


def test_a_piece_is_read_where_it_has_most_context():
    spans = windows(10, capacity=6, stride=4)
    assert spans == [(0, 6), (4, 10)]
    # pieces 4 and 5 are in both: 4 is 1 from the first window's end and 0 from the second's start;
    # 5 is 0 from the first one's end and 1 from the second's start
    assert roomiest(np.array([0, 4, 5, 9]), spans).tolist() == [0, 0, 1, 1]


def test_settings_without_room_name_what_fits():
    with pytest.raises(UserError, match="length is 2, which leaves no room"):
        check_window(0, 1, max_length=2, reason="special tokens")
    with pytest.raises(UserError, match="stride is 9, .* set it from 1 to 6"):
        check_window(6, 9, max_length=8, reason="special tokens")
