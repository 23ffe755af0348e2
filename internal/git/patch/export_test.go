package patch

// ParseDiffs reads what diff-tree printed, in two pieces.
func ParseDiffs(text []byte, cut int, v Visitor) error {
	d := &diffs{visit: v}
	d.Write(text[:cut])
	d.Write(text[cut:])
	return d.end()
}

// ParseObjects reads what cat-file printed for these objects, in two pieces.
func ParseObjects(text []byte, cut int, hashes []string, v Visitor) error {
	o := &objects{visit: v}
	for _, h := range hashes {
		o.want = append(o.want, object{hash: h, commit: h})
	}
	o.Write(text[:cut])
	o.Write(text[cut:])
	return o.end()
}
