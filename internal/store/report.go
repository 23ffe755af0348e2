package store

// Report is what a check finds of a state that is whole.
type Report struct {
	Path         string   `json:"path"`
	Bytes        int64    `json:"bytes"`     // of the database
	LogBytes     int64    `json:"log_bytes"` // of its write-ahead log
	Version      int      `json:"version"`   // how many migrations it has had
	Installation string   `json:"installation"`
	Epoch        string   `json:"epoch"`
	Runs         int      `json:"runs"`
	Fence        int64    `json:"fence"`    // the highest that was handed out, by this line of history
	Above        int64    `json:"above"`    // every new fence is above this one
	Raised       string   `json:"raised"`   // when and why fences were raised last; "" if never
	Copies       []string `json:"copies"`   // databases kept before migrations and restores
	Warnings     []string `json:"warnings"` // what is not wrong enough to refuse
}

// Restored says what putting a copy back did.
type Restored struct {
	From   string `json:"from"`   // the copy
	Kept   string `json:"kept"`   // where the database is that was there before; "" if there was none
	Raised string `json:"raised"` // what was done so that no fence is handed out twice
}
