"""The life of one recall: handle, recaller, policies, selector, fence."""
