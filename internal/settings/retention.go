package settings

import (
	"interlock/internal/policy"
	"interlock/internal/retention"
)

// Retention is how long the operator wants workspaces and logs to stay, and how full a disk to get.
func Retention(own Own) (retention.Limits, error) {
	file, err := own.Read()
	if err != nil {
		return retention.Limits{}, err
	}
	set := policy.Settle(policy.Layers{General: file.Values})
	l := retention.Limits{Workspaces: set.Span("retention.workspaces"), Logs: set.Span("retention.logs")}
	if l.LeastFree, err = policy.SizeBytes(set.Text("disk.least-free")); err == nil {
		l.Most, err = policy.SizeBytes(set.Text("disk.most"))
	}
	return l, err
}
