package rows

import "testing"

// TestJudgeTrace: an acknowledgement that comes before the sync, or without one, is bad.
func TestJudgeTrace(t *testing.T) {
	t.Parallel()
	const (
		wrote   = "77 pwrite64(11</s/state.db-wal>, \"x\", 24, 32) = 24\n"
		synced  = "77 fdatasync(11</s/state.db-wal>) = 0\n"
		begun   = "77 fsync(11</s/state.db-wal> <unfinished ...>\n"
		resumed = "77 <... fsync resumed>) = 0\n"
		other   = "77 fsync(9</s/state.floor>) = 0\n"
		ack     = "78 write(1<pipe:[1]>, \"kept 7\\n\", 7) = 7\n"
	)
	for text, want := range map[string][2]int{
		wrote + synced + ack:                                 {1, 0},
		wrote + begun + resumed + ack:                        {1, 0},
		wrote + synced + ack + wrote + begun + resumed + ack: {2, 0},
		wrote + ack + synced:                                 {1, 1},
		wrote + begun + ack + resumed:                        {1, 1},
		wrote + other + ack:                                  {1, 1},
		wrote + synced + ack + ack:                           {2, 1},
		synced + wrote + ack:                                 {1, 1},
	} {
		if acks, bad := judgeTrace(text); acks != want[0] || bad != want[1] {
			t.Errorf("%d acknowledgements, %d bad, want %v:\n%s", acks, bad, want, text)
		}
	}
}
