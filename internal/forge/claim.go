package forge

// Claim is a claim ref as it was read: the newest commit of a chain in which each commit is the
// child of the last and Generation is the parent's plus one.
type Claim struct {
	Issue        int64  `json:"issue"`
	Ref          string `json:"ref"`
	Hash         string `json:"hash"`
	Nonce        string `json:"nonce"`
	Installation string `json:"installation"`
	Holder       string `json:"holder"` // for people: host and process
	Generation   int64  `json:"generation"`
	Released     bool   `json:"released"`
}
