package shell

// Copies of frames: what step changes is the copy's own.

func (f *listFrame) clone() frame    { c := *f; return &c }
func (f *assignFrame) clone() frame  { c := *f; return &c }
func (f *negFrame) clone() frame     { c := *f; return &c }
func (f *andOrFrame) clone() frame   { c := *f; return &c }
func (f *ifFrame) clone() frame      { c := *f; return &c }
func (f *whileFrame) clone() frame   { c := *f; return &c }
func (f *forFrame) clone() frame     { c := *f; return &c }
func (f *cForFrame) clone() frame    { c := *f; return &c }
func (f *selectFrame) clone() frame  { c := *f; return &c }
func (f *caseFrame) clone() frame    { c := *f; return &c }
func (f *restoreFrame) clone() frame { c := *f; return &c }
func (f *funcFrame) clone() frame    { c := *f; return &c }
func (f *timeFrame) clone() frame    { c := *f; return &c }
func (f *trapFrame) clone() frame    { c := *f; return &c }
func (f *exitFrame) clone() frame    { c := *f; return &c }

func (f *textFrame) clone() frame {
	c := *f
	c.r = f.r.clone()
	return &c
}
